import fc from "fast-check";
import { isLockError, type Election, type Lease } from "holdfast";
import { describe, expect, test } from "vitest";

import {
  closeSimulated,
  simulateMemory,
  simulateRedis,
  type SimulatedEngine,
} from "../support/simulated-engines.ts";

const candidates = 3;
const ttlMs = 600;
const candidate = fc.nat(candidates - 1);

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ campaign: candidate }) },
    { weight: 4, arbitrary: fc.record({ resign: candidate }) },
    { weight: 2, arbitrary: fc.record({ abort: candidate }) },
    { weight: 2, arbitrary: fc.record({ die: candidate }) },
    { weight: 1, arbitrary: fc.record({ depose: candidate }) },
    { weight: 5, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 500 }) }) },
  ),
  { maxLength: 40, size: "max" },
);

type Step = typeof steps extends fc.Arbitrary<(infer T)[]> ? T : never;

interface Candidate {
  readonly election: Election;
  controller: AbortController | undefined;
  term: Lease | undefined;
}

class ScenarioPlayer {
  readonly #world: SimulatedEngine;
  readonly #candidates: Candidate[];
  #newest = 0n;
  #failure: unknown;
  /** The time since which no candidate is known to lead. */
  #leaderlessSince: number | undefined;

  constructor(world: SimulatedEngine) {
    this.#world = world;
    this.#candidates = world.locks.map((locks) => ({
      election: locks.election("k", { ttlMs }),
      controller: undefined,
      term: undefined,
    }));
  }

  async run(all: readonly Step[]): Promise<void> {
    for (const step of all) {
      await this.#do(step);
      await this.#world.clock.advance(this.#world.latencyMs);
      expect(this.#failure).toBeUndefined();
      this.#watch();
    }
    await this.#end();
  }

  async #do(step: Step): Promise<void> {
    if ("campaign" in step) {
      this.#campaign(this.#candidates[step.campaign] as Candidate);
    } else if ("resign" in step) {
      await this.#resign(this.#candidates[step.resign] as Candidate);
    } else if ("abort" in step) {
      this.#candidates[step.abort]?.controller?.abort("enough");
    } else if ("die" in step) {
      this.#candidates[step.die]?.term?.orphan();
    } else if ("depose" in step) {
      await this.#depose(step.depose);
    } else {
      await this.#world.clock.advance(step.advance);
    }
  }

  #campaign(own: Candidate): void {
    const leads = (own.term?.remainingMs() ?? 0) > 0;
    if (own.controller) {
      return; // the candidate already campaigns
    }
    const controller = new AbortController();
    own.controller = controller;
    own.election
      .campaign({ signal: controller.signal })
      .then(
        (term) => {
          expect(leads, "who leads does not campaign").toBe(false);
          const leaders = this.#candidates.filter((other) => (other.term?.remainingMs() ?? 0) > 0);
          expect(leaders, "one leader").toEqual([]);
          expect(term.fencingToken, "numbers rise").toBeGreaterThan(this.#newest);
          this.#newest = term.fencingToken;
          own.term = term;
        },
        (error: unknown) => {
          const isExpected = error === "enough" || (leads && isLockError(error, "self-deadlock"));
          if (!isExpected) {
            throw error;
          }
        },
      )
      .finally(() => (own.controller = undefined))
      .catch((error: unknown) => (this.#failure ??= error));
  }

  async #resign({ election, term }: Candidate): Promise<void> {
    const leads = (term?.remainingMs() ?? 0) > 0;
    const resigning = election.resign();
    await this.#world.clock.advance(this.#world.latencyMs);
    expect(await resigning, "resign reports whether the candidate led").toBe(leads);
    expect(term?.remainingMs() ?? 0).toBe(0);
  }

  async #depose(index: number): Promise<void> {
    const { term } = this.#candidates[index] as Candidate;
    if (term && term.remainingMs() > 0) {
      const { fencingToken } = term;
      const breaking = this.#world.locks[0]?.admin.breakLock("k", { fencingToken, reason: "test" });
      await this.#world.clock.advance(this.#world.latencyMs);
      expect(await breaking).toBe(true);
      expect(term.remainingMs()).toBe(0);
    }
  }

  /** While a candidate campaigns, a leader exists at most one TTL and one second after the death of the last leader. */
  #watch(): void {
    const now = this.#world.clock.now();
    const isLed = this.#candidates.some(({ term }) => (term?.remainingMs() ?? 0) > 0);
    const isWanted = this.#candidates.some(({ controller }) => controller !== undefined);
    if (isLed || !isWanted) {
      this.#leaderlessSince = undefined;
      return;
    }
    this.#leaderlessSince ??= now;
    const longestMs = this.#world.name === "memory" ? ttlMs / 10 : ttlMs + 1_000;
    // At most one step passes between two checks.
    expect(now - this.#leaderlessSince, "leaderless").toBeLessThanOrEqual(longestMs + 500);
  }

  async #end(): Promise<void> {
    const { clock, residue } = this.#world;
    for (const { controller, election } of this.#candidates) {
      controller?.abort("enough");
      election.resign().catch((error: unknown) => (this.#failure ??= error));
    }
    await clock.advance(2_000);
    await closeSimulated(this.#world);
    expect(residue?.() ?? []).toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}

describe.each([
  { engine: "in memory", open: async () => simulateMemory(candidates), numRuns: 100 },
  { engine: "on Redis", open: () => simulateRedis(candidates), numRuns: 50 },
])("$engine", ({ open, numRuns }) => {
  test("has one leader at most, and soon the next, after any resignation, death or break", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        await new ScenarioPlayer(await open()).run(all);
      }),
      { numRuns },
    );
  });
});
