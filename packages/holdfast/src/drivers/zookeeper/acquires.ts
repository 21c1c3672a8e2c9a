import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import type { StoreAttempt, StoreReply } from "../store/lease-store.ts";
import type { GrantView, Observations, ServerTime } from "./grants.ts";
import type { Inbox } from "./inbox.ts";
import type { LockNodes } from "./lock-nodes.ts";
import type { OwnTokens } from "./own-tokens.ts";
import { compareTickets, type EntryNode, type Paths, type View } from "./paths.ts";
import { codes, hasCode, ZooKeeperError } from "./wire/errors.ts";
import { create, getData, multi, remove, setData, type Access } from "./wire/operations.ts";
import type { Session } from "./wire/session.ts";

type AcquireReply =
  | Exclude<StoreReply, { outcome: "held" }>
  | { readonly outcome: "held"; readonly grant: GrantView | undefined; readonly position: number };

export interface AcquiresHost {
  readonly session: Session;
  readonly paths: Paths;
  readonly nodes: LockNodes;
  readonly own: OwnTokens;
  readonly inbox: Inbox;
  readonly observations: Observations;
  readonly time: ServerTime;
  readonly access: Access;
  readonly clock: Clock;
  readonly random: Random;
  readonly maxClockDifferenceMs: number;
}

/** How often a request is decided again, after a change of the lock. */
const maxRounds = 20;

/** The requests for locks. */
export class Acquires {
  readonly #host: AcquiresHost;
  /** The ticket of the last waiter that watches a node, by the node's path. Only one waiter is the next in the queue. */
  readonly #watched = new Map<string, string>();

  constructor(host: AcquiresHost) {
    this.#host = host;
  }

  /** The ticket of the waiter that watches a node; undefined: none. A watch reports one change. */
  changed(path: string): string | undefined {
    const ticket = this.#watched.get(path);
    this.#watched.delete(path);
    return ticket;
  }

  /** The watches of the connection have ended with it. */
  disconnected(): void {
    this.#watched.clear();
  }

  acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<AcquireReply> {
    return this.#host.own.using(attempt.token, () => this.#acquire(attempt, isSettled));
  }

  async #acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<AcquireReply> {
    const { token, key, entryTtlMs } = attempt;
    const { own, clock } = this.#host;
    const mark = { token, key, grant: own.grantOf(token), until: clock.now() + entryTtlMs };
    if (mark.grant === undefined) {
      own.set(mark);
    }
    for (let rounds = 0; rounds < maxRounds; rounds += 1) {
      const reply = await this.#decide(attempt, await this.#host.nodes.view(key), isSettled);
      if (reply?.outcome === "held") {
        own.delete(token, mark);
      }
      if (reply?.outcome === "queued" && own.get(token) === undefined) {
        own.set({ ...mark, until: clock.now() + entryTtlMs }); // a later request of the token has ended
      }
      if (reply) {
        return reply;
      }
    }
    const message = `the lock changed during ${maxRounds} requests`;
    throw new ZooKeeperError(message, { code: null, outcome: "unknown", retryable: true });
  }

  /** @returns undefined if the lock has changed, so that the request is to be decided again */
  async #decide(
    attempt: StoreAttempt,
    view: View,
    isSettled: () => boolean,
  ): Promise<AcquireReply | undefined> {
    const place = placeOf(view, attempt);
    if (view.held?.token === attempt.token) {
      // An earlier request of the token has entered the queue while this grant was under way.
      await this.#host.nodes.removeAll(place.own.map(({ path }) => path));
      return this.#again(attempt, view.held.path);
    }
    const isFirst = place.earlier.length === 0;
    const waits = (attempt.waitMs ?? 0) > 0;
    const grant = view.held && (isFirst || !waits) ? await this.#host.nodes.grant(view) : undefined;
    const remainingMs = grant ? this.#host.observations.remainingMs(grant) : Infinity;
    const isFree = isFirst && (await this.#isFree(view, attempt.key, grant, remainingMs));
    if (isSettled()) {
      return this.#leave(place, grant);
    } else if (isFree) {
      return this.#grant(attempt, place.own, grant);
    }
    return waits ? this.#wait(attempt, place, remainingMs) : this.#leave(place, grant);
  }

  async #leave({ own, earlier }: Place, grant: GrantView | undefined): Promise<AcquireReply> {
    await this.#host.nodes.removeAll(own.map(({ path }) => path));
    return { outcome: "held", grant, position: earlier.length };
  }

  /** Enters the queue, or watches the node before the own entry. */
  async #wait(
    attempt: StoreAttempt,
    { own: [own], earlier }: Place,
    remainingMs: number,
  ): Promise<AcquireReply | undefined> {
    if (own === undefined) {
      await this.#enter(attempt);
      return undefined;
    }
    const watched = earlier.at(-1)?.path ?? this.#host.paths.grant(attempt.key);
    const ticket = `${own.ticket}-${own.token}`; // tickets differ between locks
    return (await this.#watch(watched, ticket))
      ? { outcome: "queued", ticket, position: earlier.length, remainingMs }
      : undefined;
  }

  /** Grants the lock, in one transaction with the end of an expired grant and of the own queue entries. */
  async #grant(
    attempt: StoreAttempt,
    entries: readonly EntryNode[],
    expired: GrantView | undefined,
  ): Promise<AcquireReply | undefined> {
    const { key, token, ttlMs, owner, reason, labels } = attempt;
    const { session, paths, own, inbox, observations, time, access, clock, random } = this.#host;
    const path = paths.held(key, token, random.id());
    const value = JSON.stringify({ owner, reason, labels, ttlMs, client: inbox.id });
    const until = clock.now() + ttlMs;
    const ends = expired ? [remove(expired.path, expired.version), remove(paths.grant(key))] : [];
    try {
      const [{ stat }] = await session.request(
        multi(
          create(path, value, "persistent", access),
          ...ends,
          ...entries.map((entry) => remove(entry.path)),
          create(paths.grant(key), "", "persistent", access),
        ),
      );
      if (expired) {
        observations.forget(expired.path);
      }
      if (stat === undefined) {
        return undefined; // the next round finds the grant, and reads its properties
      }
      const { createdBy: fencingToken, version, changedAt } = stat;
      time.learn(changedAt);
      own.set({ token, key, until, grant: { path, fencingToken, version, ttlMs, owner, reason, labels } });
      return { outcome: "granted", fencingToken, ttlMs };
    } catch (error) {
      if (hasCode(error, codes.noNode) && entries.length === 0 && !expired) {
        await this.#host.nodes.createLock(key);
      } else if (!isChange(error)) {
        throw error;
      }
      return undefined;
    }
  }

  /** Extends the grant of an earlier request, whose reply was lost or has come too late. */
  async #again({ key, token, ttlMs }: StoreAttempt, path: string): Promise<AcquireReply | undefined> {
    const { nodes, own } = this.#host;
    const inForce = await nodes.extend({ key, token, path, ttlMs, info: undefined });
    const grant = own.grantOf(token);
    return inForce === undefined || grant === undefined
      ? undefined
      : { outcome: "granted", fencingToken: grant.fencingToken, ttlMs: inForce };
  }

  async #enter({ key, token, ticket, owner }: StoreAttempt): Promise<void> {
    const { session, paths, nodes, access } = this.#host;
    const entry = create(paths.entry(key, token, numberOf(ticket)), owner, "ephemeral-sequential", access);
    try {
      await session.request(entry);
    } catch (error) {
      if (!hasCode(error, codes.noNode)) {
        throw error;
      }
      await nodes.createLock(key);
    }
  }

  /** @returns whether the node exists, and its next change will wake the waiter */
  async #watch(path: string, ticket: string): Promise<boolean> {
    this.#watched.set(path, ticket);
    try {
      await this.#host.session.request(getData(path, true));
      return this.#watched.get(path) === ticket; // the change may arrive together with the reply
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        return false;
      }
      throw error;
    }
  }

  async #isFree(
    { held }: View,
    key: string,
    grant: GrantView | undefined,
    remainingMs: number,
  ): Promise<boolean> {
    return held === undefined || remainingMs === 0 || (grant !== undefined && this.#isOld(key, grant));
  }

  /**
   * Whether the wall clock of the server shows that a grant has expired long ago. This frees the locks of crashed processes if all
   * requests come from processes that end before they have seen the grant for its TTL.
   */
  async #isOld(key: string, { ttlMs, changedAt }: GrantView): Promise<boolean> {
    const { session, time, paths, maxClockDifferenceMs } = this.#host;
    const limitMs = ttlMs + maxClockDifferenceMs;
    if (time.ageMs(changedAt) <= limitMs) {
      return false;
    }
    try {
      const now = (await session.request(setData(paths.grant(key), ""))).changedAt;
      time.learn(now);
      return now - changedAt > limitMs;
    } catch (error) {
      if (hasCode(error, codes.noNode)) {
        return false;
      }
      throw error;
    }
  }
}

/** The entries of a token, and those before it. A token without an entry and without a ticket comes last. */
interface Place {
  readonly own: readonly EntryNode[];
  readonly earlier: readonly EntryNode[];
}

function placeOf({ entries }: View, { token, ticket }: StoreAttempt): Place {
  const own = entries.filter((entry) => entry.token === token);
  const number = own[0]?.ticket ?? numberOf(ticket);
  const earlier = entries.filter(
    (entry) => entry.token !== token && (number === undefined || compareTickets(entry.ticket, number) < 0),
  );
  return { own, earlier };
}

/** The sequence number of a ticket. */
function numberOf(ticket: string | undefined): number | undefined {
  return ticket === undefined ? undefined : Number.parseInt(ticket, 10);
}

/** Whether a transaction failed because another request has changed the lock. */
function isChange(error: unknown): boolean {
  return [codes.noNode, codes.nodeExists, codes.badVersion].some((code) => hasCode(error, code));
}
