import fc from "fast-check";
import { isLockError, type Lease } from "holdfast";
import { describe, expect, test } from "vitest";

import {
  closeSimulated,
  simulateMemory,
  simulateRedis,
  type SimulatedEngine,
} from "../support/simulated-engines.ts";

const names = ["a", "b", "c", "d"];
const processes = 3;

const keysOf = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 });
const which = fc.nat(5);
const by = fc.nat(processes - 1);

const steps = fc.array(
  fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({
        acquire: keysOf,
        by,
        waitMs: fc.constantFrom(null, 0, 150, 1_050, Infinity, Infinity),
        ttlMs: fc.constantFrom(201, 501),
        renew: fc.boolean(),
      }),
    },
    { weight: 6, arbitrary: fc.record({ release: which }) },
    { weight: 2, arbitrary: fc.record({ abort: which }) },
    { weight: 1, arbitrary: fc.record({ breakOne: which, key: which, by }) },
    { weight: 1, arbitrary: fc.record({ extend: which }) },
    { weight: 1, arbitrary: fc.record({ orphan: which }) },
    { weight: 5, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 400 }) }) },
  ),
  { maxLength: 40, size: "max" },
);

type Step = typeof steps extends fc.Arbitrary<(infer T)[]> ? T : never;

interface PlayedRequest {
  readonly keys: readonly string[];
  readonly controller: AbortController;
  state: "waiting" | "granted" | "over";
  lease: Lease | undefined;
}

/** Plays steps, and checks that a holder of one of its keys holds all of them exclusively. */
class ScenarioPlayer {
  readonly #world: SimulatedEngine;
  readonly #requests: PlayedRequest[] = [];
  readonly #newest = new Map<string, bigint>();
  #givesBack = false;
  #failure: unknown;

  constructor(world: SimulatedEngine) {
    this.#world = world;
  }

  async run(all: readonly Step[]): Promise<void> {
    for (const step of all) {
      await this.#do(step);
      await this.#world.clock.advance(this.#world.latencyMs * 2);
      expect(this.#failure).toBeUndefined();
      this.#watch();
    }
    await this.#end();
  }

  async #do(step: Step): Promise<void> {
    if ("acquire" in step) {
      this.#startRequest(step);
    } else if ("release" in step) {
      this.#forEachHeld(step.release, (request, lease) => this.#release(request, lease));
    } else if ("abort" in step) {
      this.#requests
        .filter(({ state }) => state === "waiting")
        .at(-1 - step.abort)
        ?.controller.abort("enough");
    } else if ("breakOne" in step) {
      await this.#break(step);
    } else if ("extend" in step) {
      this.#forEachHeld(step.extend, (_, lease) => {
        this.#follow(lease.extend(700).catch(lostOnly));
      });
    } else if ("orphan" in step) {
      this.#forEachHeld(step.orphan, (_, lease) => {
        lease.orphan();
      });
    } else {
      await this.#world.clock.advance(step.advance);
    }
  }

  #startRequest({ acquire, by: process, waitMs, ttlMs, renew }: Extract<Step, { acquire: string[] }>): void {
    const lock = this.#world.locks[process]?.all(acquire);
    const controller = new AbortController();
    const request: PlayedRequest = {
      keys: acquire.toSorted(),
      controller,
      state: "waiting",
      lease: undefined,
    };
    this.#requests.push(request);
    const options = { ttlMs, renew, signal: controller.signal };
    const granting: Promise<Lease | null> | undefined =
      waitMs === null ? lock?.tryAcquire(options) : lock?.acquire({ ...options, waitMs });
    this.#follow(
      granting?.then(
        (lease) => {
          this.#settled(request, lease);
        },
        (error: unknown) => {
          request.state = "over";
          if (error !== "enough" && !isLockError(error, "wait-timeout")) {
            throw error;
          }
        },
      ),
    );
  }

  #settled(request: PlayedRequest, lease: Lease | null): void {
    request.state = lease ? "granted" : "over";
    if (!lease) {
      return;
    }
    request.lease = lease;
    expect(lease.keys).toEqual(request.keys);
    expect(lease.key).toBe(request.keys[0]);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    for (const key of lease.keys) {
      const holders = this.#requests.filter(
        (other) => other.keys.includes(key) && (other.lease?.remainingMs() ?? 0) > 0,
      );
      expect(holders.length, `holders of ${key}`).toBe(1);
      const token = lease.fencingTokens.get(key) as bigint;
      expect(token, "numbers rise").toBeGreaterThan(this.#newest.get(key) ?? 0n);
      this.#newest.set(key, token);
    }
    if (this.#givesBack) {
      this.#release(request, lease);
    }
  }

  #release(request: PlayedRequest, lease: Lease): void {
    const isValid = lease.remainingMs() > 0;
    request.state = "over";
    this.#follow(
      lease.release().then((wasOurs) => {
        expect(wasOurs || !isValid, "a valid lease is released").toBe(true);
        expect(lease.remainingMs()).toBe(0);
      }),
    );
  }

  async #break({ breakOne, key: index, by: process }: Extract<Step, { breakOne: number }>): Promise<void> {
    const request = this.#holders().at(-1 - breakOne);
    const lease = request?.lease;
    const key = lease?.keys[index % lease.keys.length];
    if (!lease || key === undefined || lease.remainingMs() === 0) {
      return;
    }
    const fencingToken = lease.fencingTokens.get(key) as bigint;
    const { signal } = lease;
    const breaking = this.#world.locks[process]?.admin.breakLock(key, { fencingToken, reason: "test" });
    await this.#world.clock.advance(this.#world.latencyMs);
    if ((await breaking) === true) {
      expect(lease.remainingMs(), "lost with any of its keys").toBe(0);
      expect(signal.aborted).toBe(true);
    }
  }

  #holders(): PlayedRequest[] {
    return this.#requests.filter(({ state }) => state === "granted");
  }

  #forEachHeld(index: number, action: (request: PlayedRequest, lease: Lease) => void): void {
    const request = this.#holders().at(-1 - index);
    if (request?.lease) {
      action(request, request.lease);
    }
  }

  #watch(): void {
    for (const { lease } of this.#holders()) {
      const isLost = lease?.remainingMs() === 0;
      expect(lease?.signal.aborted, "a loss aborts the signal").toBe(isLost);
    }
  }

  #follow(promise: Promise<unknown> | undefined): void {
    promise?.catch((error: unknown) => (this.#failure ??= error));
  }

  /** Every lease is released. No caller waits forever, in whatever order the keys were named. */
  async #end(): Promise<void> {
    const { clock, residue } = this.#world;
    this.#givesBack = true;
    for (const request of this.#holders()) {
      this.#release(request, request.lease as Lease);
    }
    await clock.advance(5_000);
    expect(this.#failure).toBeUndefined();
    expect(
      this.#requests.filter(({ state }) => state === "waiting").map(({ keys }) => keys),
      "every caller gets its turn",
    ).toEqual([]);
    await closeSimulated(this.#world);
    expect(residue?.() ?? []).toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}

function lostOnly(error: unknown): void {
  if (!isLockError(error, "lease-lost")) {
    throw error;
  }
}

describe.each([
  { engine: "in memory", open: async () => simulateMemory(processes), numRuns: 100 },
  { engine: "on Redis", open: () => simulateRedis(processes), numRuns: 50 },
])("$engine", ({ open, numRuns }) => {
  test("acquires all keys or none in any order, never deadlocks, and is lost with any key", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        await new ScenarioPlayer(await open()).run(all);
      }),
      { numRuns },
    );
  });
});
