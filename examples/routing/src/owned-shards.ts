import type { Lease, Locks } from "holdfast";
import { fencedRedis } from "holdfast/fencing";
import { createRing, type Ring } from "holdfast/routing";
import type { Redis } from "ioredis";

import { shards, type Outcome } from "./messages.ts";

export interface InstanceContext {
  readonly name: string;
  readonly members: readonly string[];
  readonly prefix: string;
  readonly locks: Locks;
  readonly client: Redis;
}

/** A shard that this instance serves. The state of its orders is in memory, and the lease makes that correct. */
interface OpenShard {
  readonly lease: Promise<Lease>;
  /** The ids of the served requests of each order. */
  readonly orders: Map<string, number[]>;
  /** The last request. Requests of a shard are served one after another. */
  last: Promise<unknown>;
}

/** The shards of one instance: a lease for each, from the first request until the members change. */
export class OwnedShards {
  readonly #context: InstanceContext;
  readonly #open = new Map<number, OpenShard>();
  #ring: Ring;

  constructor(context: InstanceContext) {
    this.#context = context;
    this.#ring = createRing(context.members, { shards });
  }

  /** Releases the leases of all shards that now belong to others, each after its last request. */
  setMembers(members: readonly string[]): void {
    this.#ring = createRing(members, { shards });
    for (const [shard, open] of this.#open) {
      if (!this.#owns(shard)) {
        this.#open.delete(shard);
        void this.#release(open);
      }
    }
  }

  async serve(id: number, order: string): Promise<Outcome> {
    const shard = this.#ring.shardOf(order);
    if (!this.#owns(shard)) {
      return "not-owner";
    }
    const open = this.#open.get(shard) ?? this.#opened(shard);
    const served = open.last.then(() => this.#write(open, id, order));
    open.last = served.catch(() => undefined);
    try {
      await served;
      return "done";
    } catch {
      this.#forget(shard, open); // the lease is lost or was not granted: another instance may write
      return "failed";
    }
  }

  #owns(shard: number): boolean {
    return this.#ring.ownerOfShard(shard) === this.#context.name;
  }

  #opened(shard: number): OpenShard {
    const lease = this.#context.locks.acquire(`shard:${shard}`, { ttlMs: 1_000, waitMs: 10_000 });
    const open: OpenShard = { lease, orders: new Map(), last: lease.catch(() => undefined) };
    this.#open.set(shard, open);
    return open;
  }

  /** Writes the whole state of the order, from memory. With two owners of the order, updates would be lost. */
  async #write({ lease, orders }: OpenShard, id: number, order: string): Promise<void> {
    const { client, prefix, name } = this.#context;
    const held = await lease;
    const ids = orders.get(order) ?? JSON.parse((await client.get(`${prefix}${order}`)) ?? "[]");
    held.throwIfLost();
    if (!ids.includes(id)) {
      ids.push(id); // else an earlier try was served, and its reply was lost
    }
    orders.set(order, ids);
    const written = await fencedRedis(client, {
      fenceKey: `${prefix}${order}:fence`,
      fencingToken: held.fencingToken,
      commands: [
        ["SET", `${prefix}${order}`, JSON.stringify(ids)],
        ["RPUSH", `${prefix}${order}:log`, `${held.fencingToken} ${name}`],
      ],
    });
    if (written === "stale") {
      throw new Error(`${order} has a newer owner`);
    }
  }

  #forget(shard: number, open: OpenShard): void {
    if (this.#open.get(shard) === open) {
      this.#open.delete(shard);
      void this.#release(open);
    }
  }

  async #release({ lease, last }: OpenShard): Promise<void> {
    await last;
    await lease.then((held) => held.release()).catch(() => undefined); // an unreachable server: the lease expires
  }
}
