import { createLocks } from "../../create-locks.ts";
import { redis } from "../../drivers/redis/create.ts";
import type { RedisClient as HoldfastClient } from "../../drivers/redis/clients/detect.ts";
import { redlock } from "../../drivers/redis/redlock/create.ts";
import { invalidValue } from "../../option-checks.ts";
import type { Locks } from "../../locks.ts";

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

interface Quorum {
  readonly clients: readonly RedisClient[];
  readonly locks: Locks;
}

const ofClients = new WeakMap<RedisClient, Locks>();
/** By the first client. */
const ofQuorums = new WeakMap<RedisClient, Quorum[]>();

/** The one `Locks` of a client. Its keys are complete, because mutexes and semaphores have different prefixes. */
export function locksOf(client: RedisClient): Locks {
  let locks = ofClients.get(client);
  if (!locks) {
    locks = createLocks(redis(client, { prefix: "" }));
    ofClients.set(client, locks);
  }
  return locks;
}

/** The one `Locks` of a list of clients, in this order. */
export function locksOfQuorum(clients: readonly RedisClient[]): Locks {
  if (!Array.isArray(clients)) {
    throw invalidValue("clients", "an array of ioredis clients", clients);
  }
  const [first] = clients;
  const known: readonly Quorum[] = (first && ofQuorums.get(first)) ?? [];
  const same = known.find((quorum) => isSameList(quorum.clients, clients));
  if (same) {
    return same.locks;
  }
  const locks = createLocks(redlock(clients, { prefix: "", nodeTimeoutMs, maxTtlMs: maxQuorumTtlMs }));
  if (first) {
    ofQuorums.set(first, [...known, { clients: [...clients], locks }]);
  }
  return locks;
}

function isSameList(known: readonly RedisClient[], clients: readonly RedisClient[]): boolean {
  return known.length === clients.length && known.every((client, index) => client === clients[index]);
}
