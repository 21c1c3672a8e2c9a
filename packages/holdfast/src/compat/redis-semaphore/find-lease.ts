import { LockError } from "../../errors.ts";
import type { SerializedLease } from "../../lease/lease.ts";
import { minTtlMs } from "../../option-checks.ts";
import type { Locks } from "../../locks.ts";
import type { PlainCommands } from "./clients.ts";

/**
 * Finds the lease of the mutex that was acquired with this identifier and without renewal. The servers keep the identifier as a label
 * of the holder, and the token in the value of the key. The adoption verifies the result, so the two reads need not be atomic.
 * @returns undefined if the mutex is free, or another lease holds it
 * @throws {LockError} `unsupported`: redis-semaphore itself acquired the mutex, and its lease cannot be adopted
 */
export async function findLease(
  key: string,
  identifier: string,
  locks: Locks,
  clients: readonly PlainCommands[],
): Promise<SerializedLease | undefined> {
  const { holders } = await locks.inspect(key);
  const value = await mostFrequentValue(key, clients);
  if (value === identifier) {
    const message = `The mutex "${key}" was acquired by redis-semaphore, and cannot be continued; migrate both programs together`;
    throw new LockError(message, { code: "unsupported", key });
  }
  const [holder] = holders;
  if (
    value === undefined ||
    holder?.fencingToken === undefined ||
    holder.labels?.["identifier"] !== identifier
  ) {
    return undefined;
  }
  const [token = ""] = value.split(" ");
  const { owner, labels, fencingToken, remainingMs = minTtlMs } = holder;
  const ttlMs = Math.max(minTtlMs, Math.ceil(remainingMs));
  return { version: 1, key, token, fencingToken: fencingToken.toString(), owner, labels, ttlMs };
}

/** The value on most servers. A server that does not reply is left out. */
async function mostFrequentValue(
  key: string,
  clients: readonly PlainCommands[],
): Promise<string | undefined> {
  const counts = new Map<string, number>();
  for (const reply of await Promise.allSettled(clients.map((client) => client.get(key)))) {
    if (reply.status === "fulfilled" && reply.value !== null) {
      counts.set(reply.value, (counts.get(reply.value) ?? 0) + 1);
    }
  }
  const [most] = [...counts].sort(([, count], [, other]) => other - count);
  return most?.[0];
}
