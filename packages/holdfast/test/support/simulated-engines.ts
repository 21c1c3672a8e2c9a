import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";

/** An engine with several simulated processes, all on one clock. */
export interface SimulatedEngine {
  readonly name: "memory" | "redis";
  readonly clock: ManualClock;
  /** One for each process. */
  readonly locks: readonly Locks[];
  /** The fault injectors between each process and the server. Empty for the memory driver. */
  readonly faults: readonly FaultInjector[];
  /** The longest duration of a request with its reply, or of a hand-over, without faults. */
  readonly latencyMs: number;
  /** The keys that must not remain without holders and waiters. Undefined if the engine does not show its keys. */
  readonly residue: (() => string[]) | undefined;
}

export function simulateMemory(processes: number, options?: LocksOptions): SimulatedEngine {
  const clock = manualClock();
  const driver = memory({ clock, random: manualRandom(1) });
  const locks = Array.from({ length: processes }, () => createLocks(driver, options));
  return { name: "memory", clock, locks, faults: [], latencyMs: 0, residue: undefined };
}

/** @param claimMs the first validity of a grant by notification */
export async function simulateRedis(
  processes: number,
  claimMs = 1_000,
  options?: LocksOptions,
): Promise<SimulatedEngine> {
  const clock = manualClock();
  const server = new FakeRedis({ clock, random: manualRandom(900), upForMs: 3_600_000 });
  const links = Array.from({ length: processes }, () => {
    const { connection, controls } = faulty(server.connect(), { clock });
    controls.delay({ requestMs: 1, replyMs: 1 });
    return { connection, controls };
  });
  const locks = links.map(({ connection }, index) =>
    createLocks(
      redis(connection, { clock, random: manualRandom(index + 1), claimMs, commandTimeoutMs: 300 }),
      options,
    ),
  );
  for (const [index, own] of locks.entries()) {
    const warm = own.withLock(`warm${index}`, () => undefined); // determines the server's time, and verifies the subscription
    await clock.advance(100);
    await warm;
  }
  const residue = (): string[] =>
    server.keys().filter((key) => !/^holdfast:(fence$|client:|audit:)/.test(key));
  return {
    name: "redis",
    clock,
    locks,
    faults: links.map(({ controls }) => controls),
    latencyMs: 10,
    residue,
  };
}

/** Closes all processes. Rejects if a timer remains. */
export async function closeSimulated({ clock, locks }: SimulatedEngine): Promise<void> {
  const closing = Promise.all(locks.map((own) => own.close()));
  await clock.advance(5_000);
  await closing;
  if (clock.timers() > 0) {
    throw new Error(`${clock.timers()} timers are left`);
  }
}
