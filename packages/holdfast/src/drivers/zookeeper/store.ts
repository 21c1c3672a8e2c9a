import type { Capabilities, ListQuery } from "../../driver.ts";
import type { LossReason } from "../../errors.ts";
import type { Holder, LockState, NodeState, Waiter } from "../../lock-state.ts";
import type { AuditRecord, BreakNote } from "../../operator/audit.ts";
import type {
  BrokenGrant,
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreListener,
  StoreReply,
} from "../store/lease-store.ts";
import { AuditNodes } from "./audit.ts";
import { Acquires } from "./acquires.ts";
import { Observations, ServerTime, type GrantView } from "./grants.ts";
import { Inbox } from "./inbox.ts";
import { LockNodes, orMissing } from "./lock-nodes.ts";
import { nodeOf } from "./node.ts";
import type { ResolvedOptions } from "./options.ts";
import { OwnTokens, type OwnGrant } from "./own-tokens.ts";
import { decodeName, Paths } from "./paths.ts";
import { holderOf, shownWaiters, stateOf } from "./states.ts";
import { zooKeeperFailure } from "./wire/errors.ts";
import { getChildren, getData } from "./wire/operations.ts";
import { Session } from "./wire/session.ts";

const dayMs = 86_400_000;

/** The locks of one ZooKeeper ensemble. */
export class ZooKeeperStore implements LeaseStore {
  readonly capabilities: Capabilities = {
    engine: "zookeeper",
    kinds: ["mutex"],
    guarantee: "consensus",
    waiting: "notify",
    requeue: false,
    fencingBlocks: false,
    maxTtlMs: dayMs,
    claimMs: dayMs,
  };
  readonly #options: ResolvedOptions;
  readonly #session: Session;
  readonly #paths: Paths;
  readonly #time: ServerTime;
  readonly #own: OwnTokens;
  readonly #inbox: Inbox;
  readonly #nodes: LockNodes;
  readonly #audit: AuditNodes;
  readonly #acquires: Acquires;
  readonly #observations: Observations;

  constructor(options: ResolvedOptions) {
    const { clock, random, credentials } = options;
    const access = credentials === undefined ? "world" : "creator";
    const session = new Session(options);
    const paths = new Paths(options.root);
    const time = new ServerTime(clock);
    const inbox = new Inbox(random.id(), session, paths, access, time);
    const own = new OwnTokens(clock, (expired) => this.#nodes.removeExpired(expired));
    const host = { ...options, session, paths, time, inbox, own, access } as const;
    this.#options = options;
    this.#session = session;
    this.#paths = paths;
    this.#time = time;
    this.#inbox = inbox;
    this.#own = own;
    this.#nodes = new LockNodes(host);
    const createParents = (): Promise<void> => inbox.createParents();
    this.#audit = new AuditNodes({ ...host, nodes: this.#nodes, createParents });
    this.#observations = new Observations(clock);
    this.#acquires = new Acquires({ ...host, nodes: this.#nodes, observations: this.#observations });
  }

  get isNotified(): boolean {
    return this.#session.host !== undefined;
  }

  /** Every key can be the name of a node, because its characters are escaped. */
  checkKey(): void {
    // nothing is refused
  }

  async acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<StoreReply> {
    const reply = await this.#acquires.acquire(attempt, isSettled);
    if (reply.outcome !== "held") {
      return reply;
    }
    const { grant, position } = reply;
    return { outcome: "held", holder: grant && this.#holderOf(grant), position };
  }

  async extend({ fencingToken, ...extension }: StoreExtension): Promise<number | LossReason> {
    const grant = await this.#grant(extension.key, extension.token, fencingToken);
    const inForce = grant && (await this.#nodes.extend({ ...extension, path: grant.path }));
    return inForce ?? this.#lossOf(extension.key, extension.token);
  }

  /** Only the driver that has written a grant knows its remaining TTL. */
  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    const own = this.#own.get(token);
    const grant = await this.#grant(key, token, fencingToken);
    if (grant === undefined) {
      return this.#lossOf(key, token);
    }
    if (own?.grant === undefined) {
      return this.#observations.remainingMs(grant) > 0 ? -1 : "expired";
    }
    const remainingMs = own.until - this.#options.clock.now();
    return remainingMs > 0 && (await this.#nodes.exists(grant.path)) ? remainingMs : this.#lossOf(key, token);
  }

  async release(key: string, token: string): Promise<boolean> {
    const own = this.#own.get(token);
    const isInForce = own?.grant === undefined || own.until > this.#options.clock.now();
    const wasHeld = own?.grant
      ? await this.#nodes.end(key, own.grant.path)
      : await this.#nodes.removeToken(key, token);
    this.#own.delete(token, own);
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
    const view = await this.#nodes.freshView(key);
    const [grant, ...waiters] = await Promise.all([
      this.#nodes.grant(view),
      ...view.entries.slice(0, shownWaiters).map(({ path }) => this.#waiterOf(path)),
    ]);
    const present = waiters.filter((waiter) => waiter !== undefined);
    const waiterCount = view.entries.length - (waiters.length - present.length);
    return stateOf(key, grant && this.#holderOf(grant), present, waiterCount);
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const after = cursor === null ? "" : cursor.slice(1);
    const names = await orMissing(this.#session.freshly(getChildren(this.#paths.locks)), []);
    const keys = names
      .map(decodeName)
      .filter((key) => key !== undefined && key.startsWith(prefix) && key > after) as string[];
    const page = keys.sort().slice(0, limit);
    const states = await Promise.all(page.map((key) => this.inspect(key)));
    return {
      locks: states.filter(({ holders }) => holders.length > 0),
      cursor: keys.length > limit ? `>${page.at(-1)}` : null,
    };
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note: BreakNote | undefined,
  ): Promise<BrokenGrant | null> {
    for (;;) {
      const view = await this.#nodes.freshView(key);
      const grant = await this.#nodes.grant(view);
      if (!view.held || grant?.fencingToken !== fencingToken) {
        return null;
      }
      const { token, path } = view.held;
      const report = await this.#inbox.reportTo(grant.client, { token, reason });
      const record = note && (await this.#audit.record(key, fencingToken, reason, note));
      const others = [record, report].filter((operation) => operation !== undefined);
      const results = await this.#nodes.endWith(key, path, others);
      if (results === undefined) {
        this.#audit.parentMayBeMissing();
        continue;
      }
      this.#own.delete(token);
      if (!record) {
        return { token };
      }
      this.#audit.trim().catch(() => undefined); // a later break removes the records
      return { token, auditId: this.#paths.idOf((results[0] as { path: string }).path) };
    }
  }

  audit(): Promise<AuditRecord[]> {
    return this.#audit.read();
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    const grant = await this.#nodes.grant(await this.#nodes.freshView(key));
    return grant?.fencingToken === fencingToken && (await this.#nodes.exists(grant.path));
  }

  nodes(): Promise<NodeState[]> {
    const { hosts, clock } = this.#options;
    return Promise.all(hosts.map((host) => nodeOf(host, clock, this.isNotified)));
  }

  failureOf(error: unknown): StoreFailure {
    return zooKeeperFailure(error);
  }

  connectionFailure(): Error | undefined {
    return this.#session.failure;
  }

  subscribe(listener: StoreListener): () => void {
    this.#session.listener = {
      changed: (path) => {
        if (path === this.#inbox.path) {
          void this.#readBreaks(listener);
        }
        const ticket = this.#acquires.changed(path);
        if (ticket !== undefined) {
          listener.wake(ticket);
        }
      },
      connected: (isNew) => void this.#connected(isNew, listener),
      disconnected: () => this.#acquires.disconnected(),
    };
    this.#session.start();
    return () => (this.#session.listener = undefined);
  }

  async close(): Promise<void> {
    this.#own.close();
    await this.#session.close();
  }

  async #connected(isNew: boolean, listener: StoreListener): Promise<void> {
    listener.interrupted();
    try {
      if (isNew) {
        await this.#inbox.open();
      }
      await this.#readBreaks(listener);
    } catch {
      // without an inbox a holder notices a break at its next extension
    }
  }

  async #readBreaks(listener: StoreListener): Promise<void> {
    for (const token of await this.#inbox.read().catch(() => [])) {
      this.#own.delete(token);
      listener.lost(token, "broken", new Error(this.#inbox.reasonOf(token)));
    }
  }

  /** The grant of a token; undefined: it has none, or only a later grant. */
  async #grant(key: string, token: string, fencingToken?: bigint): Promise<OwnGrant | GrantView | undefined> {
    const own = this.#own.grantOf(token);
    const view = own ? undefined : await this.#nodes.freshView(key);
    const grant = own ?? (view?.held?.token === token ? await this.#nodes.grant(view) : undefined);
    const isLater = grant !== undefined && fencingToken !== undefined && grant.fencingToken > fencingToken;
    return isLater ? undefined : grant;
  }

  async #lossOf(key: string, token: string): Promise<LossReason> {
    await this.#inbox.read().catch(() => undefined);
    if (this.#inbox.reasonOf(token) !== undefined) {
      return "broken";
    }
    const { held } = await this.#nodes.freshView(key);
    return held !== undefined && held.token !== token ? "stolen" : "expired";
  }

  #waiterOf(entry: string): Promise<Omit<Waiter, "position"> | undefined> {
    return orMissing(
      this.#session.request(getData(entry)).then(({ data: owner, stat: { createdAt } }) => {
        const waitedMs = this.#time.durationMs(createdAt);
        return { owner, since: createdAt, ...(waitedMs === undefined ? {} : { waitedMs }) };
      }),
      undefined,
    );
  }

  #holderOf(grant: GrantView): Holder {
    const remainingMs = Math.max(0, grant.ttlMs - this.#time.ageMs(grant.changedAt));
    return holderOf(grant, remainingMs, this.#time.durationMs(grant.createdAt));
  }
}
