import fc from "fast-check";
import type { Lockable } from "holdfast";
import { describe, expect, test } from "vitest";

import {
  closeSimulated,
  simulateMemory,
  simulateRedis,
  type SimulatedEngine,
} from "../support/simulated-engines.ts";

/** Work under the lock: its nested works, and how many of them run at once. */
interface Work {
  readonly holdMs: number;
  readonly inside: readonly Work[];
  readonly atOnce: boolean;
  readonly throws: boolean;
  /** How long each lease is held that the work acquires by `acquire`. A lease may outlive the work. */
  readonly looseMs: readonly number[];
}

const { work } = fc.letrec<{ work: Work }>((tie) => ({
  work: fc.record({
    holdMs: fc.integer({ min: 0, max: 40 }),
    inside: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constant([]),
      fc.array(tie("work"), { maxLength: 3 }),
    ),
    atOnce: fc.boolean(),
    throws: fc.boolean(),
    looseMs: fc.array(fc.integer({ min: 0, max: 80 }), { maxLength: 2 }),
  }),
}));

const tasks = fc.array(fc.record({ by: fc.nat(1), work }), { minLength: 1, maxLength: 4 });

type Task = typeof tasks extends fc.Arbitrary<(infer T)[]> ? T : never;

/** The nested works of a task, the outermost first. */
interface HoldPosition {
  readonly task: number;
  /** How many of its branches run. */
  active: number;
}

class ScenarioPlayer {
  readonly #world: SimulatedEngine;
  /** How many leases each task has. */
  readonly #counts = new Map<number, number>();
  readonly #tokens: bigint[] = [];
  failure: unknown;

  constructor(world: SimulatedEngine) {
    this.#world = world;
  }

  async run(all: readonly Task[]): Promise<void> {
    let finished = 0;
    for (const [task, { by, work: own }] of all.entries()) {
      const lock = this.#world.locks[by]?.reentrant("k", { waitMs: Infinity, ttlMs: 1_000 }) as Lockable;
      const place = { task, active: 0 };
      this.#work(lock, own, place)
        .catch((error: unknown) => (this.failure ??= error))
        .finally(() => (finished += 1))
        .catch(() => undefined);
    }
    for (let second = 0; second < 60 && finished < all.length; second += 1) {
      await this.#world.clock.advance(1_000);
    }
    await this.#world.clock.advance(200); // for leases that outlive their work
    expect(this.failure).toBeUndefined();
    expect(finished, "no caller waits for itself").toBe(all.length);
    expect([...this.#counts.values()].filter((count) => count > 0)).toEqual([]);
    const next = this.#world.locks[0]?.tryAcquire("k");
    await this.#world.clock.advance(50);
    expect(await next, "free at the last release").not.toBeNull();
    const released = (await next)?.release();
    await this.#world.clock.advance(50);
    expect(await released).toBe(true);
  }

  async #work(lock: Lockable, own: Work, position: HoldPosition): Promise<void> {
    const failure = new Error("of the work");
    const working = lock.withLock(async (lease) => {
      this.#enter(position.task, lease.fencingToken);
      position.active += 1;
      expect(position.active, "branches work one after another").toBe(1);
      await this.#pause(own.holdMs);
      const here = { task: position.task, active: 0 };
      const loose = own.looseMs.map((ms) => this.#loose(lock, ms, position.task));
      if (own.atOnce) {
        await Promise.all(own.inside.map((inside) => this.#work(lock, inside, here)));
      } else {
        for (const inside of own.inside) {
          await this.#work(lock, inside, here);
        }
      }
      await Promise.all(loose);
      lease.throwIfLost();
      position.active -= 1;
      this.#leave(position.task);
      if (own.throws) {
        throw failure;
      }
    });
    const outcome: unknown = await working.catch((error: unknown) => error);
    expect(outcome).toBe(own.throws ? failure : undefined);
  }

  /** Resolves with the grant. The release comes later, perhaps after the end of the outer work. */
  async #loose(lock: Lockable, ms: number, task: number): Promise<void> {
    const lease = await lock.acquire();
    this.#enter(task, lease.fencingToken);
    this.#pause(ms)
      .then(() => {
        this.#leave(task);
        return lease.release();
      })
      .then((wasOurs) => {
        expect(wasOurs).toBe(true);
      })
      .catch((error: unknown) => (this.failure ??= error));
  }

  #enter(task: number, token: bigint): void {
    const others = [...this.#counts].filter(([other, count]) => other !== task && count > 0);
    expect(others, "no other caller is inside").toEqual([]);
    const count = this.#counts.get(task) ?? 0;
    if (count === 0) {
      expect(
        this.#tokens.every((earlier) => earlier < token),
        "fencing tokens rise",
      ).toBe(true);
      this.#tokens.push(token);
    }
    expect(token, "one number for all of a nest").toBe(this.#tokens.at(-1));
    this.#counts.set(task, count + 1);
  }

  #leave(task: number): void {
    this.#counts.set(task, (this.#counts.get(task) ?? 0) - 1);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.setTimer(resolve, ms);
    });
  }
}

describe.each([
  { engine: "in memory", open: async () => simulateMemory(2), numRuns: 100 },
  { engine: "on Redis", open: () => simulateRedis(2), numRuns: 60 },
])("$engine", ({ open, numRuns }) => {
  test("runs branches one after another, admits no other caller, and is free after the last release", async () => {
    await fc.assert(
      fc.asyncProperty(tasks, async (all) => {
        const world = await open();
        await new ScenarioPlayer(world).run(all);
        await closeSimulated(world);
        expect(world.residue?.() ?? []).toEqual([]);
      }),
      { numRuns },
    );
  });
});
