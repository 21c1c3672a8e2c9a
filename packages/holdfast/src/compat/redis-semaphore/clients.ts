import { createLocks } from "../../create-locks.ts";
import { redis } from "../../drivers/redis/create.ts";
import type { RedisClient as HoldfastClient } from "../../drivers/redis/clients/detect.ts";
import { redlock } from "../../drivers/redis/redlock/create.ts";
import { invalidValue } from "../../option-checks.ts";
import type { Locks } from "../../locks.ts";
import { SharedLocks } from "../shared-locks.ts";

/** An ioredis client (5 or 6), of one server, of Sentinels or of a cluster. */
export type RedisClient = HoldfastClient & PlainCommands;

/** The commands that are sent without a driver. */
export interface PlainCommands {
  get(key: string): Promise<string | null>;
  eval(script: string, keyCount: number, ...args: string[]): Promise<unknown>;
}

/** The largest `lockTimeout` of a quorum, ms. After a restart, a node does not vote for this time. */
export const maxQuorumTtlMs = 60_000;
/** Long enough for distant nodes. A larger value costs time only while most nodes do not reply. */
const nodeTimeoutMs = 500;

/** The keys are complete, because mutexes and semaphores have different prefixes. */
const single = new SharedLocks<RedisClient>(([client]) =>
  createLocks(redis(client as RedisClient, { prefix: "" })),
);
const quorum = new SharedLocks<RedisClient>((clients) =>
  createLocks(redlock(clients, { prefix: "", nodeTimeoutMs, maxTtlMs: maxQuorumTtlMs })),
);

/** The one `Locks` of a client. */
export function locksOf(client: RedisClient): Locks {
  return single.of([client]);
}

/** The one `Locks` of a list of clients, in this order. */
export function locksOfQuorum(clients: readonly RedisClient[]): Locks {
  if (!Array.isArray(clients)) {
    throw invalidValue("clients", "an array of ioredis clients", clients);
  }
  return quorum.of(clients);
}
