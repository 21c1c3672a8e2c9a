import type { Capabilities, ListQuery } from "../../driver.ts";
import { invalidKey, type LossReason } from "../../errors.ts";
import type { LockState, NodeState } from "../../lock-state.ts";
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
import { Acquires } from "./acquires.ts";
import { EtcdAudit } from "./audit.ts";
import { Deletions } from "./deletions.ts";
import { EtcdError, etcdFailure } from "./errors.ts";
import { Gateway } from "./gateway.ts";
import { decode, encode, Keys, startingWith } from "./keys.ts";
import { viewOf, viewRequests, type GrantView, type RangeReply, type TxnReply, type View } from "./kv.ts";
import { EtcdLeases, leaderChanged, secondsOf } from "./leases.ts";
import { nodeOf } from "./node.ts";
import type { ResolvedOptions } from "./options.ts";
import { holderOf, stateOf } from "./states.ts";

const dayMs = 86_400_000;
/** How long the note of a break stays for its holder, ms. */
const brokenMs = 60_000;

/** The locks of one etcd cluster. */
export class EtcdStore implements LeaseStore {
  readonly capabilities: Capabilities = {
    engine: "etcd",
    kinds: ["mutex"],
    guarantee: "consensus",
    waiting: "notify",
    requeue: false,
    fencingBlocks: false,
    maxTtlMs: dayMs,
    claimMs: dayMs,
  };
  readonly #gateway: Gateway;
  readonly #keys: Keys;
  readonly #leases: EtcdLeases;
  readonly #deletions: Deletions;
  readonly #acquires: Acquires;
  readonly #audit: EtcdAudit;
  readonly #clock: ResolvedOptions["clock"];

  constructor(options: ResolvedOptions) {
    this.#gateway = new Gateway(options);
    this.#keys = new Keys(options.prefix);
    this.#leases = new EtcdLeases(this.#gateway);
    this.#deletions = new Deletions(this.#gateway, this.#keys, options);
    this.#acquires = new Acquires(this.#gateway, this.#keys, this.#leases, this.#deletions);
    this.#audit = new EtcdAudit(this.#gateway, this.#keys);
    this.#clock = options.clock;
  }

  get isNotified(): boolean {
    return this.#deletions.isArriving;
  }

  checkKey(key: string): void {
    if (key.includes("\0")) {
      throw invalidKey(
        `The key ${JSON.stringify(key)} has a NUL character, and it ends the key in etcd`,
        key,
      );
    }
  }

  async acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<StoreReply> {
    const reply = await this.#acquires.acquire(attempt, isSettled);
    if (reply.outcome !== "held") {
      return reply;
    }
    const { grant, position } = reply;
    const holder = grant && holderOf(grant, await this.#leases.remaining(grant.lease));
    return { outcome: "held", holder, position };
  }

  async extend(extension: StoreExtension): Promise<number | LossReason> {
    const { key, token, fencingToken, ttlMs, info } = extension;
    const ttl = secondsOf(ttlMs);
    const known = this.#acquires.leaseOf(token);
    const renewed = known?.ttl === ttl && !info ? await this.#leases.keepAlive(known.id) : undefined;
    const { grant, term } = await this.#read(key);
    if (grant?.token !== token || grant.fencingToken > fencingToken) {
      return this.#lossOf(key, token, grant);
    } else if (ttl !== grant.ttl) {
      return this.#extendTo(extension, grant);
    }
    const isConfirmed = renewed?.id === grant.lease && renewed.ttl > 0 && renewed.term === term;
    return isConfirmed ? renewed.ttl * 1_000 : this.#rewrite(extension, grant);
  }

  /**
   * Extends a grant whose etcd lease has another TTL. A longer TTL is not started again, because a crash would then leave the grant for
   * longer than the caller asked.
   */
  async #extendTo(extension: StoreExtension, grant: GrantView): Promise<number | LossReason> {
    const { key, token, ttlMs, info } = extension;
    const ttl = secondsOf(ttlMs);
    const remaining = ttl < grant.ttl ? await this.#leases.remaining(grant.lease) : 0;
    if (remaining < ttl) {
      return this.#replace(extension, grant);
    }
    const isWritten = !info || (await this.#write(key, grant, { id: grant.lease, ttl: grant.ttl }, info));
    return isWritten ? remaining * 1_000 : this.#lossOf(key, token, undefined);
  }

  /** Attaches the grant to a new etcd lease, because the TTL of an etcd lease cannot change. */
  async #replace(
    { key, token, ttlMs, info }: StoreExtension,
    grant: GrantView,
  ): Promise<number | LossReason> {
    this.#acquires.forget(token); // another lease may replace the known one, even without a reply
    const lease = await this.#leases.grant(ttlMs);
    const written = await this.#write(key, grant, { id: lease.id, ttl: secondsOf(ttlMs) }, info);
    const isKept = written !== undefined && (await this.#leases.revoke(grant.lease));
    if (!isKept) {
      this.#leases.discard(lease.id); // a release has ended the grant
    }
    return isKept ? lease.ttl * 1_000 : this.#lossOf(key, token, undefined);
  }

  /** Renews the etcd lease, and then writes the grant again. The write replaces the metadata, and confirms the renewal. */
  async #rewrite({ key, token, info }: StoreExtension, grant: GrantView): Promise<number | LossReason> {
    const renewed = await this.#leases.keepAlive(grant.lease);
    const term =
      renewed.ttl > 0 ? await this.#write(key, grant, { id: grant.lease, ttl: grant.ttl }, info) : undefined;
    if (term === undefined) {
      return this.#lossOf(key, token, undefined);
    }
    if (term !== renewed.term) {
      throw leaderChanged();
    }
    this.#acquires.granted(token, { id: grant.lease, ttl: grant.ttl });
    return renewed.ttl * 1_000;
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<number | LossReason> {
    const { grant } = await this.#read(key);
    if (grant?.token !== token || (fencingToken !== undefined && grant.fencingToken > fencingToken)) {
      return this.#lossOf(key, token, grant);
    }
    const remaining = await this.#leases.remaining(grant.lease);
    return remaining >= 0 ? remaining * 1_000 : this.#lossOf(key, token, undefined);
  }

  async release(key: string, token: string): Promise<boolean> {
    const known = this.#acquires.forget(token);
    if (known !== undefined && (await this.#leases.revoke(known))) {
      return true;
    }
    const { grant, entries } = await this.#read(key);
    const entry = entries.find((one) => one.token === token);
    const ended = await Promise.all([
      grant?.token === token && this.#leases.revoke(grant.lease),
      entry && this.#leases.revoke(entry.lease),
    ]);
    return ended[0];
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
    const view = await this.#read(key);
    return stateOf(key, view, view.grant && (await this.#leases.remaining(view.grant.lease)));
  }

  async list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const start = this.#keys.grant(prefix);
    const after = cursor === null ? start : `${this.#keys.grant(cursor.slice(1))}\0`;
    // A cursor may name any key, and the range of etcd would begin before the prefix.
    const first = Buffer.compare(Buffer.from(after), Buffer.from(start)) > 0 ? after : start;
    const request = { ...startingWith(start), key: encode(first), limit: String(limit + 1), keys_only: true };
    const { kvs = [] } = await this.#gateway.call<RangeReply>("kv/range", request);
    const page = kvs.slice(0, limit).map((kv) => this.#keys.keyOfGrant(decode(kv.key)) as string);
    const states = await Promise.all(page.map((one) => this.inspect(one)));
    return {
      locks: states.filter(({ holders }) => holders.length > 0),
      cursor: kvs.length > limit ? `>${page.at(-1)}` : null,
    };
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    record: BreakNote | undefined,
  ): Promise<BrokenGrant | null> {
    const { grant } = await this.#read(key);
    if (grant?.fencingToken !== fencingToken) {
      return null;
    }
    const note = await this.#leases.grant(brokenMs);
    const broken = encode(this.#keys.broken(key, grant.token));
    const reply = await this.#gateway.call<TxnReply>("kv/txn", {
      compare: [this.#isGrant(key, grant)],
      success: [
        { request_delete_range: { key: encode(this.#keys.grant(key)) } },
        { request_put: { key: broken, value: encode(reason), lease: note.id } },
        ...(record ? this.#audit.requests(key, fencingToken, reason, record) : []),
      ],
    });
    const isBroken = reply.succeeded === true;
    this.#acquires.forget(grant.token);
    await this.#leases.revoke(isBroken ? grant.lease : note.id);
    if (!isBroken) {
      return null;
    }
    this.#audit.trim(reply).catch(() => undefined); // a later break removes the records
    return { token: grant.token, auditId: record && reply.header.revision };
  }

  audit(): Promise<AuditRecord[]> {
    return this.#audit.read();
  }

  async isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    return (await this.#read(key)).grant?.fencingToken === fencingToken;
  }

  nodes(): Promise<NodeState[]> {
    const { endpoints } = this.#gateway;
    return Promise.all(
      endpoints.map((endpoint) => nodeOf(this.#gateway, endpoint, this.#clock, this.isNotified)),
    );
  }

  failureOf(error: unknown): StoreFailure {
    return etcdFailure(error);
  }

  subscribe(listener: StoreListener): () => void {
    return this.#deletions.subscribe({
      wake: (ticket) => listener.wake(ticket),
      interrupted: () => listener.interrupted(),
      ended: (key, grant) => {
        if (this.#acquires.forget(grant.token) !== undefined) {
          void this.#reportEnd(key, grant.token, listener);
        }
      },
    });
  }

  close(): Promise<void> {
    return this.#leases.close();
  }

  /** Reports the end of a grant that this store did not release. */
  async #reportEnd(key: string, token: string, listener: StoreListener): Promise<void> {
    const reason = await this.#breakReason(key, token).catch(() => undefined);
    listener.lost(token, reason === undefined ? "expired" : "broken", new Error(reason ?? "The TTL passed"));
  }

  async #lossOf(key: string, token: string, grant: GrantView | undefined): Promise<LossReason> {
    this.#acquires.forget(token);
    const reason = await this.#breakReason(key, token);
    return reason !== undefined ? "broken" : grant === undefined ? "expired" : "stolen";
  }

  async #breakReason(key: string, token: string): Promise<string | undefined> {
    const request = { key: encode(this.#keys.broken(key, token)) };
    const { kvs } = await this.#gateway.call<RangeReply>("kv/range", request);
    return kvs?.[0] && decode(kvs[0].value);
  }

  /**
   * Writes a grant with another lease or other metadata. Its create revision stays. The write demands that nothing was written since
   * the grant was read. A late write would attach the grant to a lease that ends before the validity of a later extension.
   * @returns the term of the leader, or undefined if the grant has ended
   */
  async #write(
    key: string,
    grant: GrantView,
    lease: { id: string; ttl: number },
    info: StoreExtension["info"],
  ): Promise<string | undefined> {
    const { token, owner, reason, labels } = { ...grant, ...info };
    const value = encode(JSON.stringify({ token, owner, reason, labels, ttl: lease.ttl }));
    const grantKey = encode(this.#keys.grant(key));
    const reply = await this.#gateway.call<TxnReply>("kv/txn", {
      compare: [this.#isGrant(key, grant), { target: "MOD", key: grantKey, mod_revision: grant.written }],
      success: [{ request_put: { key: grantKey, value, lease: lease.id } }],
      failure: viewRequests(this.#keys, key),
    });
    if (reply.succeeded === true) {
      return reply.header.raft_term;
    } else if (viewOf(reply).grant?.fencingToken === grant.fencingToken) {
      const message = "an earlier request has written the grant";
      throw new EtcdError(message, { code: null, outcome: "unknown", retryable: true });
    }
    return undefined;
  }

  #isGrant(key: string, { fencingToken }: GrantView): object {
    const create_revision = fencingToken.toString();
    return { target: "CREATE", key: encode(this.#keys.grant(key)), create_revision };
  }

  async #read(key: string): Promise<View> {
    const success = viewRequests(this.#keys, key);
    return viewOf(await this.#gateway.call<TxnReply>("kv/txn", { success }));
  }
}
