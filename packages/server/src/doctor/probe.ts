import type { Locks } from "holdfast";
import type { Redis } from "ioredis";

import { errorMessage } from "./errors.ts";
import type { Finding, Probe } from "./finding.ts";

/** The durations of a probe and what it found. */
export interface Probed {
  readonly findings: readonly Finding[];
  readonly probe: Probe | null;
}

const ttlMs = 10_000;
const waitMs = 5_000;

/** Acquires a lock on a key of its own, renews it, passes it to a waiter of the other `Locks`, and releases it. */
export async function probe(
  [locks, others]: readonly [Locks, Locks],
  client: Redis | undefined,
): Promise<Probed> {
  const key = `holdfast-doctor:${crypto.randomUUID()}`;
  const timed = async <T>(work: () => Promise<T>): Promise<[T, number]> => {
    const begun = performance.now();
    return [await work(), performance.now() - begun];
  };
  const failure = new AbortController();
  try {
    const [lease, acquire] = await timed(() => locks.acquire(key, { ttlMs, waitMs }));
    const [, renew] = await timed(() => lease.extend(ttlMs));
    const waiting = others.acquire(key, { ttlMs, waitMs, signal: failure.signal });
    waiting.catch(() => undefined); // after a failure of the release the result is not used
    const wasQueued = await queued(locks, key);
    const begun = performance.now();
    const [released, release] = await timed(() => lease.release());
    const next = await waiting;
    const handover = performance.now() - begun;
    await next.release();
    const trips = client === undefined ? [] : await roundTrips(client);
    return {
      findings: [...judgements({ released, wasQueued, handover })],
      probe: {
        roundTripP50: at(trips, 0.5),
        roundTripP99: at(trips, 0.99),
        acquire,
        renew,
        handover,
        release,
      },
    };
  } catch (error) {
    failure.abort();
    return { findings: [failed(error)], probe: null };
  }
}

/** Tries each command that locks need, on a key of the same form, because ACL rules also apply inside scripts. */
export async function refusedCommands(client: Redis, prefix: string): Promise<string[]> {
  const key = `${prefix}holdfast-doctor:{${crypto.randomUUID()}}`;
  const refused: string[] = [];
  for (const [command, ...args] of needed(key)) {
    const answer = await client.call(command as string, ...args).then(() => "", errorMessage);
    // Any other error concerns the key's type, so the permission check succeeded.
    if (/NOPERM|unknown command|no permissions/i.test(answer)) {
      refused.push(command as string);
    }
  }
  await client.del(key).catch(() => 0);
  return refused;
}

function needed(key: string): readonly (readonly string[])[] {
  const [hash, queue] = [`holdfast:info:${key}`, `holdfast:queue:${key}`];
  return [
    ["EVAL", "return 1", "1", key],
    ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", key],
    ["SET", key, "probe", "PX", "5000"],
    ["GET", key],
    ["EXISTS", key],
    ["TYPE", key],
    ["PTTL", key],
    ["PEXPIRE", key, "5000"],
    ["PEXPIREAT", key, String(Date.now() + 5_000)],
    ["HSET", hash, "probe", "1"],
    ["PEXPIRE", hash, "5000"],
    ["HGET", hash, "probe"],
    ["HMGET", hash, "probe"],
    ["HGETALL", hash],
    ["HEXISTS", hash, "probe"],
    ["HDEL", hash, "probe"],
    ["ZADD", queue, "1", "probe"],
    ["PEXPIRE", queue, "5000"],
    ["ZRANGE", queue, "0", "0"],
    ["ZRANGEBYSCORE", queue, "0", "1"],
    ["ZRANK", queue, "probe"],
    ["ZSCORE", queue, "probe"],
    ["ZCARD", queue],
    ["ZREM", queue, "probe"],
    ["ZREMRANGEBYSCORE", queue, "0", "1"],
    ["ZPOPMIN", queue],
    ["DEL", key],
    ["UNLINK", hash],
    ["PUBLISH", "holdfast:grants:doctor", "probe"],
    ["TIME"],
    ["INFO", "server"],
    ["SCAN", "0", "COUNT", "1"],
  ];
}

/** Whether the waiter is in the queue now. A waiter without a queue entry polls. */
async function queued(locks: Locks, key: string): Promise<boolean> {
  const giveUpAt = performance.now() + 1_000;
  while (performance.now() < giveUpAt) {
    if ((await locks.inspect(key)).waiterCount > 0) {
      return true;
    }
  }
  return false;
}

function* judgements(seen: { released: boolean; wasQueued: boolean; handover: number }): Generator<Finding> {
  const about = { node: "probe" };
  if (!seen.released) {
    yield {
      ...about,
      level: "critical",
      id: "probe-lost",
      observed: "a lock was lost directly after its renewal",
      impact: "another program deletes or overwrites locks",
      fix: "find the other program that writes to these keys",
    };
  }
  if (!seen.wasQueued) {
    yield {
      ...about,
      level: "perf",
      id: "no-queue",
      observed: "a waiter had no queue entry within a second",
      impact: "notifications do not arrive, so waiters poll, are up to 1.5 s late, and lose their order",
      fix: "allow the user the channels holdfast:grants:*, and use no proxy that drops notifications",
    };
  } else if (seen.handover > 1_000) {
    yield {
      ...about,
      level: "perf",
      id: "late-message",
      observed: `the next waiter got the lock after ${Math.round(seen.handover)} ms`,
      impact: "notifications are lost or late, and the lock stays idle until a poll",
      fix: "check the server's load and the network",
    };
  }
}

function failed(error: unknown): Finding {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  if (cause?.code === "forbidden") {
    // The token of an operator may lack the scope. That is no failure of the locks of other clients.
    return {
      level: "info",
      id: "not-checked",
      node: "probe",
      observed: errorMessage(error),
      impact: "no lock was acquired as a test",
      fix: 'use a token with the scopes lock:acquire and lock:read for the prefix "holdfast-doctor:", or --no-probe',
    };
  }
  return {
    level: "critical",
    id: "probe-failed",
    node: "probe",
    observed: errorMessage(error),
    impact: "programs cannot acquire locks now",
    fix: "see the other findings; docs/security.md lists the needed rights",
  };
}

async function roundTrips(client: Redis): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < 100; index += 1) {
    const begun = performance.now();
    await client.time();
    times.push(performance.now() - begun);
  }
  return times.sort((a, b) => a - b);
}

function at(sorted: readonly number[], part: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;
}
