import type { StoreAttempt, StoreReply } from "../store/lease-store.ts";
import type { Deletions } from "./deletions.ts";
import { EtcdError, isNotFound } from "./errors.ts";
import type { Gateway } from "./gateway.ts";
import { encode, startingWith, type Keys } from "./keys.ts";
import { viewOf, viewRequests, type EntryView, type GrantView, type TxnReply, type View } from "./kv.ts";
import { leaderChanged, secondsOf, type EtcdLeases } from "./leases.ts";

type AcquireReply =
  | Exclude<StoreReply, { outcome: "held" }>
  | { readonly outcome: "held"; readonly grant: GrantView | undefined; readonly position: number };

/** The etcd lease of a grant, and the TTL that was requested for it, seconds. */
interface GrantLease {
  readonly id: string;
  readonly ttl: number;
}

/** The place of a request in the queue. */
interface Place {
  readonly own: EntryView | undefined;
  /** The request has had no queue entry yet. */
  readonly isNew: boolean;
  readonly earlier: readonly EntryView[];
}

/** How often a request is decided again, after a change of the lock. */
const maxRounds = 10;

/**
 * The requests for locks. A key is granted by one transaction, if it has no grant. A queue entry is a key with an etcd lease of its own,
 * and its create revision is its place in the queue.
 */
export class Acquires {
  readonly #gateway: Gateway;
  readonly #keys: Keys;
  readonly #leases: EtcdLeases;
  readonly #deletions: Deletions;
  /** The etcd leases of grants, by their tokens. */
  readonly #known = new Map<string, GrantLease>();
  /** The etcd leases of requests without a reply, by their tokens. etcd may still execute such a request while its lease is in force. */
  readonly #unanswered = new Map<string, Set<string>>();

  constructor(gateway: Gateway, keys: Keys, leases: EtcdLeases, deletions: Deletions) {
    this.#gateway = gateway;
    this.#keys = keys;
    this.#leases = leases;
    this.#deletions = deletions;
  }

  /** Notes the etcd lease of a token's grant. */
  granted(token: string, lease: GrantLease): void {
    this.#endUnanswered(token, lease.id);
    this.#known.set(token, lease);
  }

  /** The etcd lease of a token's grant, if known. */
  leaseOf(token: string): GrantLease | undefined {
    return this.#known.get(token);
  }

  /** The etcd lease of a token's grant, if known, which is no longer known from now on. */
  forget(token: string): string | undefined {
    this.#endUnanswered(token);
    const lease = this.#known.get(token)?.id;
    this.#known.delete(token);
    return lease;
  }

  async acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<AcquireReply> {
    let view = attempt.ticket === undefined ? undefined : await this.#read(attempt.key);
    for (let rounds = 0; rounds < maxRounds; rounds += 1) {
      const reply: AcquireReply | View = await this.#decide(attempt, view, isSettled());
      if ("outcome" in reply) {
        return reply;
      }
      view = reply;
    }
    const message = `the lock changed during ${maxRounds} requests`;
    throw new EtcdError(message, { code: null, outcome: "unknown", retryable: true });
  }

  /** @param view undefined: the lock is probably free @returns a newer view, if the request is to be decided again */
  async #decide(
    attempt: StoreAttempt,
    view: View | undefined,
    isSettled: boolean,
  ): Promise<AcquireReply | View> {
    const { key, token, waitMs } = attempt;
    if (view?.grant?.token === token) {
      return this.#again(key, view.grant);
    }
    const place = placeOf(attempt, view);
    const { own, earlier } = place;
    if (isSettled) {
      return this.#leave(own, { outcome: "held", grant: view?.grant, position: earlier.length });
    } else if (view === undefined || (view.grant === undefined && earlier.length === 0)) {
      return this.#grant(attempt, place);
    } else if (waitMs === null || waitMs <= 0) {
      return this.#leave(own, { outcome: "held", grant: view.grant, position: earlier.length });
    }
    return own === undefined ? this.#enter(attempt) : this.#wait(key, own, earlier, view);
  }

  /** Removes the queue entry, because the wait has ended. */
  async #leave(own: EntryView | undefined, reply: AcquireReply): Promise<AcquireReply> {
    if (own) {
      await this.#leases.revoke(own.lease);
    }
    return reply;
  }

  /** Grants the lock if it has no grant. */
  async #grant(attempt: StoreAttempt, { own, isNew }: Place): Promise<AcquireReply | View> {
    const { key, token, ttlMs, owner, reason, labels } = attempt;
    const lease = await this.#leases.grant(ttlMs);
    const grantKey = encode(this.#keys.grant(key));
    const ttl = secondsOf(ttlMs);
    const value = encode(JSON.stringify({ token, owner, reason, labels, ttl }));
    const absent = { target: "CREATE", create_revision: "0" };
    const queue = startingWith(this.#keys.entry(key));
    const reply = await this.#transact(token, lease.id, {
      compare: [{ ...absent, key: grantKey }, ...(isNew ? [{ ...absent, ...queue }] : [])],
      success: [
        { request_put: { key: grantKey, value, lease: lease.id } },
        { request_delete_range: { key: encode(this.#keys.entry(key, token)) } },
      ],
      failure: viewRequests(this.#keys, key),
    });
    if (reply?.succeeded !== true) {
      this.#leases.discard(lease.id);
      return reply ? viewOf(reply) : this.#read(key);
    }
    if (own) {
      this.#leases.discard(own.lease);
    }
    this.granted(token, { id: lease.id, ttl });
    return {
      outcome: "granted",
      fencingToken: BigInt(reply.header.revision),
      ttlMs: lease.ttl * 1_000,
    };
  }

  /** Extends the grant of an earlier request, whose reply was lost. */
  async #again(key: string, { token, lease, ttl, fencingToken }: GrantView): Promise<AcquireReply | View> {
    const { ttl: inForce, term } = await this.#leases.keepAlive(lease);
    const view = await this.#read(key);
    if (inForce === 0 || view.grant?.fencingToken !== fencingToken) {
      return view;
    }
    if (view.term !== term) {
      throw leaderChanged();
    }
    this.granted(token, { id: lease, ttl });
    return { outcome: "granted", fencingToken, ttlMs: inForce * 1_000 };
  }

  /** Adds a queue entry. An entry that has expired gets its old place again. */
  async #enter({ key, token, owner, ticket, waitMs, entryTtlMs }: StoreAttempt): Promise<View> {
    const lease = await this.#leases.grant(Math.min(waitMs ?? 0, entryTtlMs));
    const entryKey = encode(this.#keys.entry(key, token));
    const reads = viewRequests(this.#keys, key);
    const value = encode(JSON.stringify({ owner, ticket }));
    const reply = await this.#transact(token, lease.id, {
      compare: [{ target: "CREATE", key: entryKey, create_revision: "0" }],
      success: [{ request_put: { key: entryKey, value, lease: lease.id } }, ...reads],
      failure: reads,
    });
    if (reply?.succeeded !== true) {
      this.#leases.discard(lease.id);
    }
    return reply ? viewOf(reply) : this.#read(key);
  }

  /** Keeps the queue entry, and watches the key before it. */
  async #wait(
    key: string,
    own: EntryView,
    earlier: readonly EntryView[],
    view: View,
  ): Promise<AcquireReply | View> {
    const ticket = own.ticket.toString();
    const previous = earlier.at(-1);
    const watched = previous ? this.#keys.entry(key, previous.token) : this.#keys.grant(key);
    const isAlive = (await this.#leases.keepAlive(own.lease)).ttl > 0;
    return isAlive && this.#deletions.wakeAfter(watched, view.revision, ticket)
      ? { outcome: "queued", ticket, position: earlier.length, remainingMs: Infinity }
      : this.#read(key);
  }

  /**
   * Writes a grant or a queue entry with its etcd lease.
   * @returns undefined if the lease has ended, because then nothing was written
   */
  async #transact(token: string, lease: string, request: object): Promise<TxnReply | undefined> {
    const unanswered = this.#unanswered.get(token) ?? new Set();
    this.#unanswered.set(token, unanswered.add(lease));
    const answered = (): void => {
      unanswered.delete(lease);
      if (unanswered.size === 0 && this.#unanswered.get(token) === unanswered) {
        this.#unanswered.delete(token);
      }
    };
    try {
      const reply = await this.#gateway.call<TxnReply>("kv/txn", request);
      answered();
      return reply;
    } catch (error) {
      if (error instanceof EtcdError && error.outcome === "none") {
        answered();
      }
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Ends the etcd leases of a token's requests without a reply. A member that was frozen would otherwise execute such a request after
   * the release, and no process could take the lock until the TTL has passed.
   * @param inUse the lease of the token's grant
   */
  #endUnanswered(token: string, inUse?: string): void {
    for (const lease of this.#unanswered.get(token) ?? []) {
      if (lease !== inUse) {
        this.#leases.discard(lease);
      }
    }
    this.#unanswered.delete(token);
  }

  async #read(key: string): Promise<View> {
    return viewOf(await this.#gateway.call<TxnReply>("kv/txn", { success: viewRequests(this.#keys, key) }));
  }
}

function placeOf({ token, ticket }: StoreAttempt, view: View | undefined): Place {
  const entries = view?.entries ?? [];
  const own = entries.find((one) => one.token === token);
  if (own === undefined && ticket === undefined) {
    return { own, isNew: true, earlier: entries };
  }
  const place = own?.ticket ?? BigInt(ticket as string);
  return { own, isNew: false, earlier: entries.filter((one) => one !== own && one.ticket < place) };
}
