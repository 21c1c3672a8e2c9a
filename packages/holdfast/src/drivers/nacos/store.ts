import type { Capabilities, ListQuery } from "../../driver.ts";
import type { LossReason } from "../../errors.ts";
import type { LockState, NodeState } from "../../lock-state.ts";
import type {
  BrokenGrant,
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreReply,
} from "../store/lease-store.ts";
import { decideAcquire, extendedGrant } from "./acquire.ts";
import { NacosClient } from "./client.ts";
import { changed, type Grant, type LockDocument } from "./document.ts";
import { Documents, type Decision, type View } from "./documents.ts";
import { nacosFailure } from "./errors.ts";
import { Observations } from "./observations.ts";
import type { ResolvedOptions } from "./options.ts";
import { OwnGrants, type OwnGrant } from "./own-grants.ts";
import { ServerTime } from "./server-time.ts";
import { holderOf, nodeOf, stateOf } from "./states.ts";

const dayMs = 86_400_000;
/** How many broken grants a lock remembers for their holders. */
const maxBroken = 10;

/** Without a fencing token every grant of the token is extended. */
type Extension = Omit<StoreExtension, "fencingToken"> & { readonly fencingToken: bigint | undefined };

/** The locks in one group of configurations. */
export class NacosStore implements LeaseStore {
  readonly capabilities: Capabilities = {
    engine: "nacos",
    kinds: ["mutex"],
    guarantee: "database",
    waiting: "poll",
    requeue: false,
    fencingBlocks: false,
    maxTtlMs: dayMs,
    claimMs: dayMs,
  };
  readonly isNotified = false;
  readonly #id: string;
  readonly #clock: ResolvedOptions["clock"];
  readonly #client: NacosClient;
  readonly #documents: Documents;
  readonly #observations: Observations;
  readonly #own: OwnGrants;

  constructor(options: ResolvedOptions) {
    const { clock, random, maxClockDifferenceMs } = options;
    const time = new ServerTime(clock);
    this.#id = random.id();
    this.#clock = clock;
    this.#client = new NacosClient(options, time);
    this.#documents = new Documents({ client: this.#client, time, clock, random });
    this.#observations = new Observations(clock, maxClockDifferenceMs);
    this.#own = new OwnGrants(clock, (expired) => this.#removeExpired(expired));
  }

  /** Every key can be the ID of a configuration, because its characters are escaped. */
  checkKey(): void {
    // nothing is refused
  }

  async acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<StoreReply> {
    const { key, token } = attempt;
    const sent = this.#clock.now();
    const { reply, version, holder } = await this.#documents.update(key, (view) => {
      const stamp = this.#documents.stamp();
      const turn = this.#observations.observe(view);
      const context = { turn, stamp, client: this.#id, isSettled: isSettled() };
      const decision = decideAcquire(attempt, view.document, context);
      const { result, next } = decision;
      const grant = result.outcome === "held" ? result.grant : null;
      const holder = grant ? holderOf(grant, this.#remainingOf(grant, view), view.readAt) : undefined;
      return { next, result: { reply: result, version: stamp.id, holder } };
    });
    if (reply.outcome === "granted") {
      this.#own.set({ key, token, version, until: sent + (reply.ttlMs ?? attempt.ttlMs) });
    }
    return reply.outcome === "held" ? { outcome: "held", holder, position: reply.position } : reply;
  }

  async extend(extension: Extension): Promise<number | LossReason> {
    const { key, token, fencingToken, ttlMs, info } = extension;
    const sent = this.#clock.now();
    type Extended = Decision<{ version: string; inForce: number | LossReason }>;
    const { version, inForce } = await this.#documents.update(key, ({ document }): Extended => {
      const grant = ownGrantIn(document, token, fencingToken);
      const { id: version, at } = this.#documents.stamp();
      if (grant === undefined) {
        return { result: { version, inForce: lossOf(document, token) } };
      }
      const base = this.#withRemainingTtl(grant, sent);
      const extended = { ...extendedGrant(base, { ttlMs, version, at, client: this.#id }), ...info };
      const next = changed(document, { grant: extended }, { id: version, at });
      return { result: { version, inForce: extended.ttlMs }, next };
    });
    if (typeof inForce === "number") {
      this.#own.set({ key, token, version, until: sent + inForce });
    } else {
      this.#own.delete(token);
    }
    return inForce;
  }

  /** Only the driver that has written a grant, and got the reply, knows its remaining TTL. */
  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    const own = this.#own.get(token);
    const view = await this.#documents.read(key);
    const grant = ownGrantIn(view.document, token, fencingToken);
    if (grant === undefined) {
      return lossOf(view.document, token);
    }
    if (own?.version !== grant.version || own.isLate === true) {
      return this.#observations.observe(view).remainingMs > 0 ? -1 : "expired";
    }
    const remainingMs = own.until - this.#clock.now();
    return remainingMs > 0 ? remainingMs : "expired";
  }

  async release(key: string, token: string): Promise<boolean> {
    const own: OwnGrant | undefined = this.#own.get(token);
    const isInForce = own === undefined || own.until > this.#clock.now();
    let isEnding = own?.isEnding === true;
    const unconfirmed = (): void => {
      isEnding = true;
      if (own) {
        own.isEnding = true; // for the repeat of this call
      }
    };
    const wasHeld = await this.#documents.update(key, ({ document }): Decision<boolean> => {
      const { grant, queue } = document;
      const isHeld = grant?.token === token;
      if (!isHeld && !queue.some((entry) => entry.token === token)) {
        return { result: isEnding && lossOf(document, token) !== "broken" };
      }
      const rest = queue.filter((entry) => entry.token !== token);
      const changes = { grant: isHeld ? null : grant, queue: rest };
      const next = changed(document, changes, this.#documents.stamp());
      return { result: isHeld, next, ...(isHeld && { unconfirmed }) };
    });
    this.#own.delete(token);
    return wasHeld && isInForce;
  }

  /** The core does not call this, because there is no read-write lock. */
  async downgrade(): Promise<boolean> {
    return false;
  }

  /** The core does not call this, because there is no semaphore. */
  async setLimit(): Promise<void> {
    // nothing has a limit
  }

  async inspect(key: string): Promise<LockState> {
    return this.#stateOf(await this.#documents.read(key));
  }

  /** A cursor is the number of the next page. */
  isCursor(text: string): boolean {
    return /^[1-9]\d{0,8}$/.test(text);
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const page = Number(cursor ?? 1);
    const { views, isLast } = await this.#documents.list(prefix, page, limit);
    return {
      locks: views.map((view) => this.#stateOf(view)).filter(({ holders }) => holders.length > 0),
      cursor: isLast ? null : String(page + 1),
    };
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<BrokenGrant | null> {
    const token = await this.#documents.update(key, ({ document }): Decision<string | null> => {
      const { grant } = document;
      if (grant === null || BigInt(grant.fencingToken) !== fencingToken) {
        return { result: null };
      }
      const broken = [...document.broken, { token: grant.token, reason }].slice(-maxBroken);
      const next = changed(document, { grant: null, broken }, this.#documents.stamp());
      return { result: grant.token, next };
    });
    if (token === null) {
      return null;
    }
    this.#own.delete(token);
    return { token };
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    const { fencingToken: current } = await this.inspect(key);
    return current === fencingToken;
  }

  nodes(): Promise<NodeState[]> {
    return Promise.all(this.#client.servers.map((server) => nodeOf(this.#client, server, this.#clock)));
  }

  failureOf(error: unknown): StoreFailure {
    return nacosFailure(error);
  }

  async close(): Promise<void> {
    this.#own.close();
  }

  /** The grant with the rest of its TTL, if this driver knows it. */
  #withRemainingTtl(grant: Grant, now: number): Grant {
    const own = this.#own.get(grant.token);
    return own?.version === grant.version ? { ...grant, ttlMs: Math.ceil(own.until - now) } : grant;
  }

  #stateOf(view: View): LockState {
    const { document } = view;
    const { grant } = document;
    const isHeld = grant !== null && this.#observations.observe(view).remainingMs > 0;
    return stateOf(
      document,
      isHeld ? holderOf(grant, this.#remainingOf(grant, view), view.readAt) : undefined,
    );
  }

  /** The remaining TTL, ms: exact for the grants of this driver, otherwise by the clocks of the servers, in whole seconds. */
  #remainingOf({ token, version, ttlMs, at }: Grant, { readAt }: View): number {
    const own = this.#own.get(token);
    const ageMs = readAt === undefined || at === null ? 0 : Math.max(0, readAt - at);
    const isExact = own?.version === version && own.isLate !== true;
    const remainingMs = isExact ? own.until - this.#clock.now() : ttlMs - ageMs;
    return Math.max(0, Math.min(ttlMs, remainingMs));
  }

  #removeExpired({ key, token, version }: OwnGrant): Promise<OwnGrant | undefined> {
    return this.#documents.update(key, ({ document }): Decision<OwnGrant | undefined> => {
      const { grant } = document;
      if (grant?.token !== token || grant.client !== this.#id) {
        return { result: undefined };
      }
      if (grant.version !== version) {
        const until = this.#clock.now() + grant.ttlMs; // the reply to an extension was lost
        return { result: { key, token, version: grant.version, until, isLate: true } };
      }
      return { result: undefined, next: changed(document, { grant: null }, this.#documents.stamp()) };
    });
  }
}

/** The grant of a token; undefined: it has none, or only a later grant. */
function ownGrantIn({ grant }: LockDocument, token: string, fencingToken?: bigint): Grant | undefined {
  const isLater = grant !== null && fencingToken !== undefined && BigInt(grant.fencingToken) > fencingToken;
  return grant?.token === token && !isLater ? grant : undefined;
}

function lossOf({ grant, broken }: LockDocument, token: string): LossReason {
  if (broken.some((one) => one.token === token)) {
    return "broken";
  }
  return grant === null ? "expired" : "stolen";
}
