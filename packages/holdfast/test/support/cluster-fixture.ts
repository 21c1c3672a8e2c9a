import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { Cluster } from "ioredis";
import { expect } from "vitest";
import { startCluster, type ClusterOptions, type RedisCluster } from "@holdfast/test-kit";

import { slotOf } from "../../src/drivers/redis/cluster/hash-slot.ts";
import { clusterLibraries } from "./cluster-clients.ts";
import type { RecordEntry } from "./workers.ts";

/** A cluster of one test, with the clients and locks opened for it. */
export class ClusterFixture implements AsyncDisposable {
  readonly cluster: RedisCluster;
  readonly #cleanups: (() => void | Promise<void>)[] = [];

  private constructor(cluster: RedisCluster) {
    this.cluster = cluster;
  }

  static async open(options?: ClusterOptions): Promise<ClusterFixture> {
    return new ClusterFixture(await startCluster(options));
  }

  get port(): number {
    return this.cluster.ports[0] as number;
  }

  /** The cleanups at the end of the test, in reverse order. */
  onCleanup(cleanup: () => void | Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  /** One `Locks` for a client of each supported library. */
  async locksPerLibrary(): Promise<Map<string, Locks>> {
    const clients = new Map<string, Locks>();
    for (const [name, open] of Object.entries(clusterLibraries)) {
      const { client, close } = await open(this.port);
      this.onCleanup(close);
      const locks = createLocks(redis(client), { closeTimeoutMs: 1_000 });
      this.onCleanup(() => locks.close());
      clients.set(name, locks);
    }
    return clients;
  }

  /** A `Locks` with its own client. */
  locks(options?: RedisOptions, locksOptions?: LocksOptions): Locks {
    const client = this.client();
    const locks = createLocks(redis(client, options), { closeTimeoutMs: 1_000, ...locksOptions });
    this.onCleanup(() => locks.close());
    return locks;
  }

  client(): Cluster {
    const client = new Cluster(this.cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
    client.on("error", () => undefined);
    this.onCleanup(() => {
      client.disconnect();
    });
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cleanup of this.#cleanups.reverse()) {
      await cleanup();
    }
    await this.cluster.stop();
  }
}

/** The slot of a key of a lock. */
export function slotOfLock(key: string): number {
  return slotOf(`lock:${key}`);
}

/** Keys of locks in the slots of the first `count` servers in turn, if each server has the same number of slots. */
export function keysOnDifferentPrimaries(count: number, name: string, each: number): string[][] {
  const keys = Array.from({ length: count }, (): string[] => []);
  for (let i = 0; keys.some((found) => found.length < each); i++) {
    const key = `${name}:${i}`;
    const found = keys[Math.floor((slotOfLock(key) * count) / 16_384)] as string[];
    if (found.length < each) {
      found.push(key);
    }
  }
  return keys;
}

/** The overlapping pairs of turns in a record. */
export function overlapsOf(entries: readonly RecordEntry[]): string[] {
  const found: string[] = [];
  const holders = new Set<string>();
  for (const { what: event, who: worker } of entries) {
    if (event === "end") {
      holders.delete(worker);
    } else {
      found.push(...Array.from(holders, (other) => `${other} and ${worker}`));
      holders.add(worker);
    }
  }
  return found;
}

export function expectRising(entries: readonly RecordEntry[]): void {
  const tokens = entries.filter(({ what: event }) => event === "begin").map((entry) => entry.fencingToken);
  expect(tokens.filter((token, i) => i > 0 && token <= (tokens[i - 1] as bigint))).toEqual([]);
}
