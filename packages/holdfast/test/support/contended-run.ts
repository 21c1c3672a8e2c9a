import { once } from "node:events";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { Locks } from "holdfast";

/** The metrics after {@link contendedRun}: counts of histograms, and values of counters and gauges. */
export const expectedCounts: Readonly<Record<string, number>> = {
  "holdfast.acquire.duration group=orders outcome=acquired": 6,
  "holdfast.acquire.duration group=orders outcome=held": 1,
  "holdfast.acquire.duration group=orders outcome=wait_timeout": 1,
  "holdfast.acquire.duration error.type=kind-mismatch group=orders outcome=error": 1,
  "holdfast.wait.duration group=orders outcome=acquired": 2,
  "holdfast.wait.duration group=orders outcome=wait_timeout": 1,
  "holdfast.hold.duration end=released group=orders": 4,
  "holdfast.hold.duration end=broken group=orders": 1,
  "holdfast.hold.duration end=expired group=orders": 1,
  "holdfast.held group=orders kind=mutex": 0,
  "holdfast.waiting group=orders where=engine": 0,
  "holdfast.waiting group=orders where=process": 0,
  "holdfast.lost group=orders reason=broken": 1,
  "holdfast.lost group=orders reason=expired": 1,
  "holdfast.breaks group=orders": 1,
  "holdfast.overrun.duration group=orders": 1,
  "holdfast.releases group=orders outcome=released": 4,
  "holdfast.releases group=orders outcome=not_held": 1,
  "holdfast.fence.checks group=orders result=current": 1,
  "holdfast.fence.checks group=orders result=stale": 1,
};

/** One of each event, by two `Locks` on one engine. */
export async function contendedRun(here: Locks, there: Locks): Promise<void> {
  const key = "orders:1";
  const first = await here.acquire(key, { ttlMs: 300 });
  await messageOf("tracing:holdfast:renew:asyncEnd"); // renewed at a third of its TTL
  const queuedThere = messageOf("holdfast:queued");
  const waiting = there.acquire(key);
  await queuedThere;
  const queuedHere = messageOf("holdfast:queued");
  const next = here.acquire(key);
  await queuedHere;
  await here.tryAcquire(key);
  await here.acquire(key, { waitMs: 60 }).catch(() => undefined);
  await here.checkFence(key, first.fencingToken);
  await first.release();
  await here.checkFence(key, first.fencingToken);
  await Promise.all([waiting.then(release), next.then(release)]);
  const broken = await here.acquire("orders:2");
  await there.admin.breakLock("orders:2", { fencingToken: broken.fencingToken, reason: "test" });
  if (!broken.signal.aborted) {
    await once(broken.signal, "abort");
  }
  const frozen = await here.acquire("orders:3", { ttlMs: 100, renew: false });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150); // as a process that is stopped for longer than its validity
  await frozen.release();
  const other = await here.acquire("orders:4");
  await there
    .semaphore("orders:4", { limit: 2 })
    .acquire()
    .catch(() => undefined);
  await other.release();
}

async function release<L extends { release(): Promise<boolean> }>(lease: L): Promise<L> {
  await lease.release();
  return lease;
}

/** The next message of a channel. */
function messageOf(channel: string): Promise<unknown> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      unsubscribe(channel, listen);
      resolve(message);
    };
    subscribe(channel, listen);
  });
}
