import { setTimeout as pause } from "node:timers/promises";

import type { Latch } from "holdfast";

import { uniqueName, type ClientState, type LatchUser } from "./client-state.ts";
import type { LatchKeys } from "../plan/plan.ts";

/** The number of brief latches that the process retains, so that it also uses expired ones. */
const maxBriefLatches = 3;
const quietPeriodTtlMs = 60_000;

interface OpenLatch {
  readonly key: string;
  readonly handle: number;
  readonly count: number;
  readonly ttlMs: number;
  readonly latch: Latch;
}

/** Counts latches down, and waits for them. All processes use the same latches, with the same names of attempts. */
export class LatchCaller implements LatchUser {
  readonly #client: ClientState;
  readonly #keys: LatchKeys;
  readonly #briefLatches: OpenLatch[] = [];
  #handleCount = 0;

  constructor(client: ClientState, keys: LatchKeys) {
    this.#client = client;
    this.#keys = keys;
  }

  async useLatch(): Promise<void> {
    const { random } = this.#client;
    const openLatch = random.happens(0.8) ? this.#currentLatch() : this.#briefLatch();
    if (random.happens(0.35)) {
      await this.#wait(openLatch, random.pick([0, random.integer(50, 500), 4_000, 8_000]), false);
      return;
    }
    const attempt = random.happens(0.6) ? `attempt ${random.integer(1, openLatch.count + 2)}` : undefined;
    const isCounted = await this.#countDown(openLatch, attempt, false);
    if (attempt !== undefined && (!isCounted || random.happens(0.3))) {
      await pause(random.between(0, 100));
      await this.#countDown(openLatch, attempt, false); // a repeat of the attempt
    }
  }

  async runQuietPeriodLatch(round: number, waitMs: number): Promise<void> {
    const openLatch = this.#createLatch(`latch-peace-${round}`, this.#keys.count, quietPeriodTtlMs);
    const waiting = this.#wait(openLatch, waitMs, true);
    for (let attemptNumber = 1; attemptNumber <= openLatch.count; attemptNumber += 1) {
      await this.#countDown(openLatch, `attempt ${attemptNumber}`, true);
    }
    await waiting;
  }

  /** The current latch of all processes. Each latch lasts for a turn of `everyMs`. */
  #currentLatch(): OpenLatch {
    const { everyMs, count, ttlMs } = this.#keys;
    const turn = Math.floor(this.#client.recorder.clock.now() / everyMs);
    return this.#createLatch(`latch-${turn}`, count, ttlMs);
  }

  /** A latch of the key that has one latch after another. An object of an expired latch still exists when the next latch starts. */
  #briefLatch(): OpenLatch {
    const { random } = this.#client;
    if (this.#briefLatches.length < maxBriefLatches || random.happens(0.3)) {
      const { briefTtlMs, briefCount } = this.#keys;
      this.#briefLatches.push(this.#createLatch("latch-brief", briefCount, briefTtlMs));
      this.#briefLatches.splice(0, this.#briefLatches.length - maxBriefLatches);
    }
    return random.pick(this.#briefLatches);
  }

  #createLatch(key: string, count: number, ttlMs: number): OpenLatch {
    this.#handleCount += 1;
    return {
      key,
      count,
      ttlMs,
      handle: this.#handleCount,
      latch: this.#client.locks.latch(key, { count, ttlMs }),
    };
  }

  async #countDown(openLatch: OpenLatch, attemptId: string | undefined, isProbe: boolean): Promise<boolean> {
    const { latch, ...request } = openLatch;
    const attempt = attemptId ?? uniqueName(this.#client);
    return this.#client.recorder.callLatch({ ...request, attemptId: attempt, waitMs: 0, isProbe }, () =>
      latch.countDown(attemptId === undefined ? {} : { attemptId }),
    );
  }

  async #wait(openLatch: OpenLatch, waitMs: number, isProbe: boolean): Promise<void> {
    const { latch, ...request } = openLatch;
    await this.#client.recorder.callLatch({ ...request, waitMs, isProbe }, async () => {
      await latch.wait({ waitMs });
      return 0;
    });
  }
}
