import { createLocks, isLockError, type Lease, type Locks } from "holdfast";
import { http } from "holdfast/http";

/** A program that runs in workers and in browsers. Each function uses the service of `url`, and returns JSON. */

export interface Wait {
  readonly url: string;
  readonly key: string;
  readonly waitMs: number;
}

/** Two tries for one key. */
export function tryTwice({ url, key }: Wait): Promise<object> {
  return using(url, async (locks) => {
    const lease = await locks.tryAcquire(key);
    const second = await locks.tryAcquire(key);
    return {
      isHeld: lease !== null && lease.remainingMs() > 0,
      second: second ?? null,
      released: await lease?.release(),
    };
  });
}

export function waitForLock({ url, key, waitMs }: Wait): Promise<object> {
  return using(url, async (locks) => {
    const lease = await locks.acquire(key, { waitMs });
    return { key: lease.key, fencingToken: lease.fencingToken.toString(), released: await lease.release() };
  });
}

export function waitWithLock({ url, key, waitMs }: Wait): Promise<object> {
  return using(url, (locks) =>
    locks.withLock(key, { waitMs }, async (lease) => ({ key: lease.key, isHeld: lease.remainingMs() > 0 })),
  );
}

/** Holds one key for many times its TTL, and waits for others at the same time. */
export function waitForMany({ url, key, waitMs }: Wait, others: readonly string[]): Promise<object> {
  return using(url, async (locks) => {
    const own = await locks.acquire(key, { ttlMs: 1_500 });
    const leases = await Promise.all(others.map((other) => locks.acquire(other, { waitMs })));
    const isHeld = own.remainingMs() > 0;
    await Promise.all([own, ...leases].map((lease: Lease) => lease.release()));
    return { isHeld, granted: leases.map((lease) => lease.key) };
  });
}

/** The order in which waiters of one key get the lock. */
export function waitInLine({ url, key, waitMs }: Wait, waiters: number): Promise<number[]> {
  return using(url, async (locks) => {
    const served: number[] = [];
    const serve = async (index: number): Promise<void> => {
      const lease = await locks.acquire(key, { waitMs });
      served.push(index);
      await lease.release();
    };
    await Promise.all(Array.from({ length: waiters }, (_, index) => serve(index)));
    return served;
  });
}

/** Waits until an abort, which comes after `waitMs`. */
export function abortWait({ url, key, waitMs }: Wait): Promise<object> {
  return using(url, async (locks) => {
    const signal = AbortSignal.timeout(waitMs);
    const error: unknown = await locks
      .acquire(key, { signal, waitMs: 60_000 })
      .catch((reason: unknown) => reason);
    return { aborted: error === signal.reason, name: (error as Error).name };
  });
}

/** Holds a key until its loss. The key with the suffix `:held` is held from then on too, as a sign. */
export function holdUntilLost({ url, key }: Wait): Promise<object> {
  return using(url, async (locks) => {
    const lease = await locks.acquire(key, { ttlMs: 1_000 });
    await locks.acquire(`${key}:held`, { ttlMs: 1_000 });
    await new Promise((resolve) => {
      lease.signal.addEventListener("abort", resolve);
    });
    const overdueMs = performance.now() - lease.validUntil;
    return { code: isLockError(lease.signal.reason) && lease.signal.reason.code, overdueMs };
  });
}

async function using<T>(url: string, use: (locks: Locks) => Promise<T>): Promise<T> {
  const locks = createLocks(http(url), { handover: false });
  try {
    return await use(locks);
  } finally {
    await locks.close();
  }
}
