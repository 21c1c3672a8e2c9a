import { setTimeout as pause } from "node:timers/promises";

import type { Latch } from "holdfast";

import { freshName, type Office } from "./client-state.ts";
import type { LatchKeys } from "../plan/plan.ts";

/** Those of brief latches that are kept, so that they are used when theirs is over. */
const mostKept = 3;
const peaceTtlMs = 60_000;

interface Known {
  readonly key: string;
  readonly view: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly latch: Latch;
}

/** Counts latches down, and waits for them. All processes use the same, and the same names of attempts. */
export class LatchVisitor {
  readonly #office: Office;
  readonly #keys: LatchKeys;
  readonly #brief: Known[] = [];
  #views = 0;

  constructor(office: Office, keys: LatchKeys) {
    this.#office = office;
    this.#keys = keys;
  }

  async visit(): Promise<void> {
    const { chance } = this.#office;
    const known = chance.happens(0.8) ? this.#present() : this.#briefOne();
    if (chance.happens(0.35)) {
      await this.#wait(known, chance.pick([0, chance.whole(50, 500), 4_000, 8_000]), false);
      return;
    }
    const attempt = chance.happens(0.6) ? `attempt ${chance.whole(1, known.count + 2)}` : undefined;
    const isCounted = await this.#count(known, attempt, false);
    if (attempt !== undefined && (!isCounted || chance.happens(0.3))) {
      await pause(chance.between(0, 100));
      await this.#count(known, attempt, false); // the same again
    }
  }

  /** Everybody counts by the same names: it has to open, and to let everybody go. */
  async open(round: number, waitMs: number): Promise<void> {
    const known = this.#open(`latch-peace-${round}`, this.#keys.count, peaceTtlMs);
    const waiting = this.#wait(known, waitMs, true);
    for (let number = 1; number <= known.count; number += 1) {
      await this.#count(known, `attempt ${number}`, true);
    }
    await waiting;
  }

  /** There is one at a time, for all, which lasts until nobody uses it any more. */
  #present(): Known {
    const { everyMs, count, ttlMs } = this.#keys;
    const turn = Math.floor(this.#office.recorder.clock.now() / everyMs);
    return this.#open(`latch-${turn}`, count, ttlMs);
  }

  /** Its key has one after the other, and who knew one still has it when the next is there. */
  #briefOne(): Known {
    const { chance } = this.#office;
    if (this.#brief.length < mostKept || chance.happens(0.3)) {
      const { briefTtlMs, briefCount } = this.#keys;
      this.#brief.push(this.#open("latch-brief", briefCount, briefTtlMs));
      this.#brief.splice(0, this.#brief.length - mostKept);
    }
    return chance.pick(this.#brief);
  }

  #open(key: string, count: number, ttlMs: number): Known {
    this.#views += 1;
    return { key, count, ttlMs, view: this.#views, latch: this.#office.locks.latch(key, { count, ttlMs }) };
  }

  async #count(known: Known, attemptId: string | undefined, isProbe: boolean): Promise<boolean> {
    const { latch, ...about } = known;
    const attempt = attemptId ?? freshName(this.#office);
    return this.#office.recorder.callLatch({ ...about, attempt, waitMs: 0, isProbe }, () =>
      latch.countDown(attemptId === undefined ? {} : { attemptId }),
    );
  }

  async #wait(known: Known, waitMs: number, isProbe: boolean): Promise<void> {
    const { latch, ...about } = known;
    await this.#office.recorder.callLatch({ ...about, waitMs, isProbe }, async () => {
      await latch.wait({ waitMs });
      return 0;
    });
  }
}
