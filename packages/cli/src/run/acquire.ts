import type { AcquireOptions, Lease, Lockable } from "holdfast";

import type { Engine } from "../engine.ts";
import { Exit, exits } from "../exit.ts";
import type { Voice } from "../output.ts";
import { tellWaiting } from "./waiting.ts";

/** Which lock, and how it is waited for. */
export interface Wanted {
  readonly keys: readonly [string, ...string[]];
  /** How many may have it at once; `shared`: any number of those that say so. */
  readonly among: "one" | "shared" | { readonly limit: number };
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly maxHoldMs: number;
  readonly owner: string;
  readonly reason: string | undefined;
  /** Whether it is renewed as long as we live. */
  readonly renew?: boolean;
}

/**
 * Waits for the lock, and tells meanwhile.
 * @returns null where it is still held when the wait is over
 * @throws the reason of `interrupted`
 */
export async function acquire(
  engine: Engine,
  wanted: Wanted,
  around: { readonly voice: Voice; readonly interrupted: AbortSignal },
): Promise<Lease | null> {
  const { waitMs } = wanted;
  const { ttlMs, maxHoldMs, owner, reason, renew } = wanted;
  const signal = around.interrupted;
  const options: AcquireOptions = { ttlMs, maxHoldMs, owner, reason, renew, signal };
  const lock = lockOf(engine, wanted);
  const lease =
    waitMs === 0
      ? await lock.tryAcquire(options)
      : await wait(lock, { ...options, waitMs }, engine, wanted, around);
  if (lease !== null && lease.remainingMs() < ttlMs / 2) {
    await prolong(lease, ttlMs);
  }
  return lease;
}

async function wait(
  lock: Lockable,
  options: AcquireOptions,
  engine: Engine,
  { keys: [key] }: Wanted,
  { voice }: { readonly voice: Voice },
): Promise<Lease | null> {
  const telling = tellWaiting(engine, key, voice);
  try {
    return await lock.acquire(options);
  } catch (error) {
    if ((error as { code?: unknown }).code === "wait-timeout") {
      return null;
    }
    throw error;
  } finally {
    telling[Symbol.dispose]();
  }
}

/** A grant after a wait is valid for a short time until its first renewal, which may be less than the grace. */
async function prolong(lease: Lease, ttlMs: number): Promise<void> {
  try {
    await lease.extend(ttlMs);
  } catch (error) {
    await lease.release().catch(() => false);
    throw error;
  }
}

function lockOf({ locks }: Engine, { keys, among }: Wanted): Lockable {
  const [key, ...others] = keys;
  if (others.length > 0) {
    if (among !== "one") {
      throw new Exit(exits.usage, "--shared and --limit are for one --key");
    }
    return locks.all(keys);
  }
  if (among === "one") {
    return locks.mutex(key);
  }
  return among === "shared" ? locks.readWrite(key).read : locks.semaphore(key, among);
}
