import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";

/** A simulated server with several processes, all on one clock. */
export interface SimulatedRedis {
  readonly clock: ManualClock;
  /** One for each process. */
  readonly locks: readonly Locks[];
  /** The fault injectors between each process and the server. */
  readonly faults: readonly FaultInjector[];
}

export async function simulateRedis(processes: number): Promise<SimulatedRedis> {
  const clock = manualClock();
  const server = new FakeRedis({ clock, random: manualRandom(900), upForMs: 3_600_000 });
  const links = Array.from({ length: processes }, () => {
    const { connection, controls } = faulty(server.connect(), { clock });
    controls.delay({ requestMs: 1, replyMs: 1 });
    return { connection, controls };
  });
  const locks = links.map(({ connection }, index) =>
    createLocks(
      redis(connection, { clock, random: manualRandom(index + 1), claimMs: 1_000, commandTimeoutMs: 300 }),
    ),
  );
  for (const [index, own] of locks.entries()) {
    const warm = own.withLock(`warm${index}`, () => undefined); // determines the server's time, and verifies the subscription
    await clock.advance(100);
    await warm;
  }
  return { clock, locks, faults: links.map(({ controls }) => controls) };
}

/** Closes all processes. Rejects if a timer remains. */
export async function closeSimulated({ clock, locks }: SimulatedRedis): Promise<void> {
  const closing = Promise.all(locks.map((own) => own.close()));
  await clock.advance(5_000);
  await closing;
  if (clock.timers() > 0) {
    throw new Error(`${clock.timers()} timers are left`);
  }
}
