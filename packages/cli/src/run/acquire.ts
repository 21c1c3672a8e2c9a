import type { AcquireOptions, Lease, Lockable } from "holdfast";

import type { Engine } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import type { Output } from "../output.ts";
import { reportWaiting } from "./waiting.ts";

/** The requested lock, and the terms of the wait. */
export interface AcquireSpec {
  readonly keys: readonly [string, ...string[]];
  /** The allowed number of holders at the same time; `shared`: any number of shared holders. */
  readonly among: "one" | "shared" | { readonly limit: number };
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly owner: string;
  readonly reason: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether the lease is renewed while this process lives. */
  readonly renew?: boolean;
}

/**
 * Waits for the lock, and reports the holder during the wait.
 * @returns null if the lock is still held at the end of the wait
 * @throws the reason of `interrupted`
 */
export async function acquire(
  engine: Engine,
  spec: AcquireSpec,
  outer: { readonly voice: Output; readonly interrupted: AbortSignal },
): Promise<Lease | null> {
  const { waitMs } = spec;
  const { ttlMs, owner, reason, labels, renew } = spec;
  const signal = outer.interrupted;
  const options: AcquireOptions = { ttlMs, maxHoldMs: Infinity, owner, reason, labels, renew, signal };
  const lock = lockOf(engine, spec);
  const lease =
    waitMs === 0
      ? await lock.tryAcquire(options)
      : await wait(lock, { ...options, waitMs }, engine, spec, outer);
  if (lease !== null && lease.remainingMs() < ttlMs / 2) {
    await prolong(lease, ttlMs);
  }
  return lease;
}

async function wait(
  lock: Lockable,
  options: AcquireOptions,
  engine: Engine,
  { keys: [key] }: AcquireSpec,
  { voice: output }: { readonly voice: Output },
): Promise<Lease | null> {
  const reporter = reportWaiting(engine, key, output);
  try {
    return await lock.acquire(options);
  } catch (error) {
    if ((error as { code?: unknown }).code === "wait-timeout") {
      return null;
    }
    throw error;
  } finally {
    reporter[Symbol.dispose]();
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

function lockOf({ locks }: Engine, { keys, among }: AcquireSpec): Lockable {
  const [key, ...others] = keys;
  if (others.length > 0) {
    if (among !== "one") {
      throw new Exit(exitCodes.usage, "--shared and --limit are for one --key");
    }
    return locks.all(keys);
  }
  if (among === "one") {
    return locks.mutex(key);
  }
  return among === "shared" ? locks.readWrite(key).read : locks.semaphore(key, among);
}
