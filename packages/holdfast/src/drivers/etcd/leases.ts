import { EtcdError, isNotFound } from "./errors.ts";
import type { Gateway } from "./gateway.ts";

/** A lease of etcd: keys that are attached to it end with it. */
interface EtcdLease {
  readonly id: string;
  /** The granted TTL, which may be longer than the requested one, seconds. */
  readonly ttl: number;
}

/** A lease whose TTL was started again. */
export interface RenewedLease extends EtcdLease {
  /**
   * The term in which a member renewed the lease. A leader renews leases alone, and may have been replaced without noticing. The renewal
   * is in force if a later linearizable request shows the same term.
   */
  readonly term: string;
}

interface KeepAliveReply {
  readonly result?: { readonly header: { readonly raft_term: string }; readonly TTL?: string };
}

/** The leases of etcd. A TTL counts in whole seconds, and the server has a minimum. */
export class EtcdLeases {
  readonly #gateway: Gateway;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  async grant(ttlMs: number): Promise<EtcdLease> {
    const request = { TTL: String(secondsOf(ttlMs)) };
    const { ID, TTL } = await this.#gateway.call<{ ID: string; TTL: string }>("lease/grant", request);
    return { id: ID, ttl: Number(TTL) };
  }

  /** Starts the TTL again. The TTL of the reply is 0 if the lease has ended. */
  async keepAlive(id: string): Promise<RenewedLease> {
    const { result } = await this.#gateway.call<KeepAliveReply>("lease/keepalive", { ID: id });
    if (result === undefined) {
      throw new EtcdError("no reply to a renewal", { code: null, outcome: "unknown", retryable: true });
    }
    return { id, ttl: Number(result.TTL ?? 0), term: result.header.raft_term };
  }

  /** @returns the remaining TTL, rounded down, seconds, or -1 if the lease has ended */
  async remaining(id: string): Promise<number> {
    const reply = await this.#gateway.call<{ TTL?: string; grantedTTL?: string }>("lease/timetolive", {
      ID: id,
    });
    const [ttl, granted] = [Number(reply.TTL ?? 0), Number(reply.grantedTTL ?? 0)];
    if (ttl > granted) {
      throw leaderChanged(); // a former leader reports a TTL without end
    }
    return ttl;
  }

  /** Ends a lease, and deletes its keys. @returns whether the lease was in force */
  async revoke(id: string): Promise<boolean> {
    try {
      await this.#gateway.call("lease/revoke", { ID: id });
      return true;
    } catch (error) {
      if (isNotFound(error)) {
        return false;
      }
      throw error;
    }
  }

  /** Ends a lease without keys. After a failure the lease ends with its TTL. */
  discard(id: string): void {
    const revoked = this.revoke(id).catch(() => false);
    this.#underWay.add(revoked);
    void revoked.then(() => this.#underWay.delete(revoked));
  }

  async close(): Promise<void> {
    await Promise.all(this.#underWay);
  }
}

/** A TTL in the whole seconds of etcd. */
export function secondsOf(ttlMs: number): number {
  return Math.ceil(ttlMs / 1_000);
}

/** The error of a request that a former leader may have answered. */
export function leaderChanged(): EtcdError {
  const message = "the leader changed during the request";
  return new EtcdError(message, { code: null, outcome: "unknown", retryable: true });
}
