import { isLockError, type Latch } from "holdfast";
import fc from "fast-check";
import { expect } from "vitest";

import { LatchModel, type ModelHandle, type ModelWait, type WaitState } from "./latch-model.ts";
import { closeSimulated, type SimulatedEngine } from "./simulated-engines.ts";

const processes = 3;
const key = "k";
/** How late an end may be reported on Redis: the shortest poll delay, its jitter, and the latency. */
const expiryReportMs = 100;

export type Step =
  | { readonly make: number; readonly count: number; readonly ttlMs: number }
  | { readonly count: number; readonly attempt: number | null }
  | { readonly wait: number; readonly waitMs: number }
  | { readonly abort: number }
  | { readonly advance: number }
  | { readonly close: number };

/** The times are chosen so that an end, a deadline and a step never coincide. */
export function latchSteps(): fc.Arbitrary<Step[]> {
  const by = fc.nat(processes - 1);
  const which = fc.nat(5);
  const ttlMs = fc.integer({ min: 2, max: 20 }).map((hundreds) => hundreds * 100 + 1);
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ make: by, count: fc.constantFrom(1, 3, 3, 3, 5), ttlMs }) },
    {
      weight: 14,
      arbitrary: fc.record({ count: which, attempt: fc.option(fc.nat(3), { nil: null }) }),
    },
    {
      weight: 12,
      arbitrary: fc.record({ wait: which, waitMs: fc.constantFrom(0, 155, 555, 1_055, Infinity, Infinity) }),
    },
    { weight: 3, arbitrary: fc.record({ abort: which }) },
    { weight: 8, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6 }).map((n) => n * 100) }) },
    { weight: 1, arbitrary: fc.record({ close: by }) },
  );
  return fc.array(step, { maxLength: 40, size: "max" }) as fc.Arbitrary<Step[]>;
}

/** A latch object of the library with its counterpart in the model. */
interface CreatedLatch {
  readonly by: number;
  readonly latch: Latch;
  readonly handle: ModelHandle;
}

interface WaitingCall {
  readonly by: number;
  readonly controller: AbortController;
  state: WaitState;
  /** When its caller aborted. */
  leftAt: number;
}

/** Plays steps against an engine without faults, and compares each reply and its time with the model. */
export class LatchScenarioPlayer {
  readonly #world: SimulatedEngine;
  readonly #model: LatchModel;
  readonly #latches: CreatedLatch[] = [];
  readonly #waiting: WaitingCall[] = [];
  readonly #closed = new Set<number>();
  /** Latches that ended between the two requests of a count, which the model has counted. */
  readonly #missed = new Set<number>();
  #calls = 0;
  #failure: unknown;

  constructor(world: SimulatedEngine) {
    this.#world = world;
    this.#model = new LatchModel(world.clock.now());
    this.#make({ make: 0, count: 3, ttlMs: 1_501 });
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      await this.#do(step);
      await this.#advance(this.#world.latencyMs);
      this.#compare(step);
      await this.#compareView();
    }
    await this.#checkEnd();
  }

  async #do(step: Step): Promise<void> {
    if ("make" in step) {
      this.#make(step);
    } else if ("attempt" in step) {
      this.#count(step);
    } else if ("wait" in step) {
      this.#wait(step);
    } else if ("abort" in step) {
      this.#abort(step.abort);
    } else if ("advance" in step) {
      await this.#advance(step.advance);
    } else {
      this.#close(step.close);
    }
  }

  #make({ make, count, ttlMs }: Extract<Step, { make: number }>): void {
    const locks = this.#world.locks[make];
    if (locks && !this.#closed.has(make)) {
      const handle = { count, ttlMs, known: undefined };
      this.#latches.push({ by: make, latch: locks.latch(key, { count, ttlMs }), handle });
    }
  }

  #count({ count, attempt }: Extract<Step, { attempt: number | null }>): void {
    const made = this.#at(count);
    if (!made) {
      return;
    }
    this.#calls += 1;
    const named = attempt === null ? `call ${this.#calls}` : `attempt ${attempt}`;
    const expected = this.#model.countDown(made.handle, named);
    const mayEndBefore = this.#model.remainingMs <= 3 * this.#world.latencyMs;
    const answer = made.latch.countDown(attempt === null ? {} : { attemptId: named });
    this.#follow(
      answer.then(
        (remaining) => {
          expect(remaining, "the remaining count").toBe(expected);
        },
        (error: unknown) => {
          const code = codeOf(error);
          if (code === "latch-expired" && mayEndBefore) {
            this.#missed.add(made.handle.known ?? 0);
          } else {
            expect(code, "the refusal of a count").toBe(expected);
          }
        },
      ),
    );
  }

  #wait({ wait, waitMs }: Extract<Step, { wait: number }>): void {
    const made = this.#at(wait);
    if (!made) {
      return;
    }
    const waiting: WaitingCall = {
      by: made.by,
      controller: new AbortController(),
      state: "waiting",
      leftAt: Infinity,
    };
    this.#waiting.push(waiting);
    this.#model.wait(made.handle, waitMs);
    this.#follow(
      made.latch.wait({ waitMs, signal: waiting.controller.signal }).then(
        () => {
          waiting.state = "open";
        },
        (error: unknown) => {
          const code = error === "enough" ? "left" : codeOf(error);
          waiting.state = (code === "closed" ? "left" : code) as WaitState;
        },
      ),
    );
  }

  #abort(index: number): void {
    const waiting = this.#waiting.filter(({ state }) => state === "waiting").at(-1 - index);
    if (waiting) {
      this.#model.dequeue(this.#waiting.indexOf(waiting));
      waiting.leftAt = this.#model.now;
      waiting.controller.abort("enough");
    }
  }

  #close(by: number): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by) || this.#closed.size === processes - 1) {
      return; // the close of the last process would close the engine
    }
    this.#closed.add(by);
    this.#waiting.forEach((waiting, index) => {
      if (waiting.by === by) {
        this.#model.dequeue(index);
        waiting.leftAt = Math.min(waiting.leftAt, this.#model.now);
      }
    });
    this.#follow(locks.close());
  }

  async #advance(ms: number): Promise<void> {
    this.#model.advance(ms);
    await this.#world.clock.advance(ms);
    if (this.#failure !== undefined) {
      throw this.#failure as Error;
    }
  }

  #compare(step: Step): void {
    this.#waiting.forEach(({ state, leftAt }, index) => {
      const expected = this.#model.waits[index];
      const accepted = expected ? this.#acceptedFor(expected, leftAt) : [];
      expect(accepted, `wait ${index} after ${JSON.stringify(step)}`).toContain(state);
    });
  }

  /** The states that a wait may have. On Redis the end of a latch is reported late, because waiters poll. */
  #acceptedFor({ state, latch, since, deadline }: ModelWait, leftAt: number): WaitState[] {
    const isMissed = state === "open" && this.#missed.has(latch);
    if ((state !== "latch-expired" && !isMissed) || this.#world.name !== "redis") {
      return [state];
    }
    const states: [WaitState, boolean][] = [
      ["latch-expired", true],
      ["open", isMissed],
      ["waiting", this.#model.now - since < expiryReportMs],
      ["wait-timeout", deadline - since < expiryReportMs],
      ["left", leftAt - since < expiryReportMs],
    ];
    return states.flatMap(([name, isAccepted]) => (isAccepted ? [name] : []));
  }

  async #compareView(): Promise<void> {
    const observer = this.#world.locks.find((_, index) => !this.#closed.has(index));
    if (this.#world.name !== "memory" || !observer) {
      return;
    }
    const { kind, remaining, waiterCount, remainingMs } = await observer.inspect(key);
    expect([kind === "latch", remaining]).toEqual([
      this.#model.remaining !== undefined,
      this.#model.remaining,
    ]);
    expect(waiterCount).toBe(this.#model.waits.filter(({ state }) => state === "waiting").length);
    expect(remainingMs === null).toBe(remaining === undefined);
  }

  /** The remaining waits end when the TTL expires, and no residue remains. */
  async #checkEnd(): Promise<void> {
    const { clock, residue } = this.#world;
    await this.#advance(3_000);
    expect(this.#waiting.filter(({ state }) => state === "waiting")).toEqual([]);
    expect(residue?.() ?? [], "nothing is left").toEqual([]);
    await closeSimulated(this.#world);
    await clock.advance(10);
    expect(this.#failure).toBeUndefined();
  }

  #at(index: number): CreatedLatch | undefined {
    return this.#latches.filter(({ by }) => !this.#closed.has(by)).at(-1 - index);
  }

  #follow(promise: Promise<unknown>): void {
    promise.catch((error: unknown) => (this.#failure ??= error));
  }
}

function codeOf(error: unknown): string {
  if (!isLockError(error)) {
    throw error;
  }
  return error.code;
}
