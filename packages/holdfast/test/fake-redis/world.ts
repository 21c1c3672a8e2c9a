import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { redis } from "holdfast/redis";
import { createLocks, type Locks } from "holdfast";
import { faulty, manualClock, manualRandom, type FaultInjector, type ManualClock } from "holdfast/testing";
import { onTestFinished } from "vitest";

interface Process {
  readonly locks: Locks;
  readonly faults: FaultInjector;
}

/** One server and several processes, all on one manual clock. */
export class World {
  readonly clock: ManualClock = manualClock({ now: 1_000 });
  readonly server: FakeRedis = new FakeRedis({ clock: this.clock, random: manualRandom(1) });
  #processes = 0;

  process(): Process {
    this.#processes += 1;
    const { clock } = this;
    const { connection, controls } = faulty(this.server.connect(), { clock });
    const random = manualRandom(100 + this.#processes);
    const locks = createLocks(redis(connection, { clock, random }), { closeTimeoutMs: 100 });
    onTestFinished(async () => {
      controls.dropReply(0);
      await this.settled(locks.close());
    });
    return { locks, faults: controls };
  }

  /** Advances the clock in small steps, so that requests are answered in between. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10) {
      await this.clock.advance(Math.min(10, left));
      await turn();
    }
  }

  /** Advances the clock until the promise is settled. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isPending = true;
    const done = (): void => {
      isPending = false;
    };
    promise.then(done, done);
    await turn();
    for (let passed = 0; isPending && passed < 100_000; passed += 10) {
      await this.pass(10);
    }
    return promise;
  }
}

/** Runs everything that needs no time. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
