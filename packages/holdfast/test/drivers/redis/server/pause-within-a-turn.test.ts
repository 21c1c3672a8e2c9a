import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Clock } from "holdfast";
import { redis, redlock, type Connection } from "holdfast/redis";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { describe, expect, test } from "vitest";

// A process may pause between any two instructions: for the collector, by its scheduler, or with its machine.

/** Almost as long as the TTL of a grant by notification, `claimMs`. */
const pauseMs = 2_900;
/** More readings than the longest turn of a waiter that is granted the lock. */
const maxReadings = 40;

const engines = {
  "one server": {
    nodes: 1,
    connect: ([connection]: Connection[], own: OwnOptions) => redis(connection as Connection, own),
  },
  "a quorum": {
    nodes: 3,
    connect: (connections: Connection[], own: OwnOptions) => redlock(connections, own),
  },
};

type OwnOptions = { clock: Clock; random: ReturnType<typeof manualRandom> };

describe.each(Object.entries(engines))("on %s", (_, { nodes, connect }) => {
  test("a pause at any reading of a clock never lengthens the validity of a grant by notification", async () => {
    for (let readings = 1; readings <= maxReadings; readings += 1) {
      const clock = manualClock();
      const servers = Array.from(
        { length: nodes },
        (__, index) =>
          new FakeRedis({ clock, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
      );
      const pausing = new PausingClock(clock);
      const open = (own: Clock, seed: number): ReturnType<typeof createLocks> =>
        createLocks(
          connect(
            servers.map((server) => server.connect()),
            { clock: own, random: manualRandom(seed) },
          ),
        );
      const [holder, waiter] = [open(clock, 100), open(pausing, 200)];
      const warm = waiter.withLock("warm", () => undefined);
      const held = holder.acquire("k");
      await clock.advance(100);
      await warm;
      const lease = await held;
      const remainders: [here: number, there: number][] = [];
      const granted = waiter.acquire("k", { waitMs: Infinity }).then((own) => {
        pausing.pauseAfter(Infinity);
        const there = servers.map((server) => Number(server.call("PTTL", "lock:k")));
        remainders.push([own.remainingMs(), there.sort((one, other) => one - other)[nodes >> 1] as number]);
        return own;
      });
      await clock.advance(100);
      pausing.pauseAfter(readings);
      const released = lease.release();
      await clock.advance(10_000);
      expect(await released).toBe(true);
      await (await granted).release();
      const [here, there] = remainders[0] ?? [Infinity, 0];
      expect(here, `after a pause at reading ${readings}`).toBeLessThanOrEqual(there);
    }
  });
});

/** The process is blocked once, after a number of readings. */
class PausingClock implements Clock {
  readonly #clock: ManualClock;
  #readings = Infinity;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  pauseAfter(readings: number): void {
    this.#readings = readings;
  }

  now(): number {
    return this.#read(this.#clock.now());
  }

  wall(): number {
    return this.#read(this.#clock.wall());
  }

  setTimer(action: () => void, delayMs: number): unknown {
    return this.#clock.setTimer(action, delayMs);
  }

  clearTimer(timer: unknown): void {
    this.#clock.clearTimer(timer);
  }

  #read(time: number): number {
    this.#readings -= 1;
    if (this.#readings === 0) {
      this.#clock.block(pauseMs);
    }
    return time;
  }
}
