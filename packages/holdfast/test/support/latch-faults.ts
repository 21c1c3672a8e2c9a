import { isLockError, type Latch } from "holdfast";
import fc from "fast-check";
import { expect } from "vitest";

import { closeSimulated, type SimulatedEngine } from "./simulated-engines.ts";

const processes = 3;
const count = 6;
const ttlMs = 600_000;

export type FaultStep =
  | { readonly countBy: number; readonly attempt: number | null }
  | { readonly waitBy: number }
  | { readonly advance: number }
  | { readonly fault: "silence" | "reset" | "duplicate" | "mute" | "deaf" | "none"; readonly at: number };

export function faultSteps(): fc.Arbitrary<FaultStep[]> {
  const by = fc.nat(processes - 1);
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ countBy: by, attempt: fc.option(fc.nat(4), { nil: null }) }) },
    { weight: 4, arbitrary: fc.record({ waitBy: by }) },
    { weight: 6, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 400 }) }) },
    {
      weight: 8,
      arbitrary: fc.record({
        fault: fc.constantFrom("silence", "reset", "duplicate", "mute", "deaf", "none"),
        at: by,
      } as const),
    },
  );
  return fc.array(step, { maxLength: 30, size: "max" }) as fc.Arbitrary<FaultStep[]>;
}

/** Plays steps while replies and notifications are lost or repeated, and checks the guarantees of a latch. */
export class LatchFaultScenario {
  readonly #world: SimulatedEngine;
  readonly #latches: readonly Latch[];
  readonly #sent = new Set<string>();
  readonly #answered = new Set<string>();
  #waiting = 0;
  #calls = 0;
  #failure: unknown;

  constructor(world: SimulatedEngine) {
    this.#world = world;
    this.#latches = world.locks.map((locks) => locks.latch("k", { count, ttlMs }));
  }

  async run(steps: readonly FaultStep[], isMutedAtTheEnd: boolean): Promise<void> {
    for (const step of steps) {
      if ("countBy" in step) {
        this.#count(step.countBy, step.attempt);
      } else if ("waitBy" in step) {
        this.#wait(step.waitBy);
      } else if ("advance" in step) {
        await this.#advance(step.advance);
      } else {
        this.#fault(step.fault, step.at);
      }
    }
    await this.#checkEnd(isMutedAtTheEnd);
  }

  #count(by: number, attempt: number | null): void {
    this.#calls += 1;
    const name = attempt === null ? `call ${this.#calls}` : `attempt ${attempt}`;
    this.#sent.add(name);
    const counting = this.#latches[by]?.countDown(attempt === null ? {} : { attemptId: name });
    this.#follow(
      counting?.then(
        (remaining) => {
          this.#answered.add(name);
          expect(remaining, "each answered attempt counted").toBeLessThanOrEqual(
            Math.max(0, count - this.#answered.size),
          );
          expect(remaining, "no attempt counted twice").toBeGreaterThanOrEqual(
            Math.max(0, count - this.#sent.size),
          );
        },
        (error: unknown) => {
          if (!isLockError(error, "engine-unavailable")) {
            throw error;
          }
        },
      ),
    );
  }

  #wait(by: number): void {
    this.#waiting += 1;
    this.#follow(
      this.#latches[by]?.wait({ waitMs: Infinity }).then(() => {
        this.#waiting -= 1;
        expect(this.#sent.size, "the latch does not open early").toBeGreaterThanOrEqual(count);
      }),
    );
  }

  #fault(fault: Extract<FaultStep, { fault: string }>["fault"], at: number): void {
    const faults = this.#world.faults[at];
    switch (fault) {
      case "silence":
      case "reset":
        faults?.dropReply(1, fault);
        return;
      case "duplicate":
        faults?.duplicate(1, 130);
        return;
      case "mute":
        faults?.dropMessages(() => true);
        return;
      case "deaf":
        faults?.dropSubscription();
        return;
      case "none":
        faults?.dropMessages(null);
        return;
    }
  }

  async #advance(ms: number): Promise<void> {
    await this.#world.clock.advance(ms);
    if (this.#failure !== undefined) {
      throw this.#failure as Error;
    }
  }

  /** Ends the faults. All attempts count down, and every wait ends by its poll at the latest. */
  async #checkEnd(isMuted: boolean): Promise<void> {
    const { clock, faults, residue } = this.#world;
    for (const own of faults) {
      own.dropReply(0);
      own.duplicate(0, 0);
      own.dropMessages(isMuted ? () => true : null);
    }
    await this.#advance(6_000);
    // Without other calls, a process that lost the reply of a call and that of its probe refuses one call, which sends the next probe.
    await this.#track(() => Promise.all(this.#world.locks.map((locks) => locks.inspect("k").catch(refused))));
    const previous = (await this.#track(() => this.#world.locks[0]?.inspect("k")))?.remaining ?? count;
    expect(previous).toBeLessThanOrEqual(Math.max(0, count - this.#answered.size));
    expect(previous).toBeGreaterThanOrEqual(Math.max(0, count - this.#sent.size));
    for (let turn = 0; turn < count; turn += 1) {
      this.#count(turn % processes, null);
    }
    this.#wait(0);
    await this.#advance(10);
    expect((await this.#track(() => this.#world.locks[0]?.inspect("k")))?.remaining).toBe(0);
    await this.#advance(isMuted ? 6_000 : 100);
    expect(this.#waiting, "every wait ends").toBe(0);
    await closeSimulated(this.#world);
    await clock.advance(ttlMs);
    expect(residue?.() ?? [], "nothing is left").toEqual([]);
  }

  async #track<T>(question: () => Promise<T> | undefined): Promise<T | undefined> {
    const operation = question();
    await this.#advance(10);
    return operation;
  }

  #follow(promise: Promise<unknown> | undefined): void {
    promise?.catch((error: unknown) => (this.#failure ??= error));
  }
}

function refused(error: unknown): undefined {
  if (!isLockError(error, "engine-unavailable")) {
    throw error;
  }
}
