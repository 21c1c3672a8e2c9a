import { setTimeout as pause } from "node:timers/promises";

import type { AcquireOptions, Locks } from "holdfast";

import type { Chance } from "./chance.ts";
import type { Handed } from "./client-protocol.ts";
import type { AskKind } from "./history.ts";
import type { Keys } from "./plan.ts";
import { RecordedLease } from "./recorded-lease.ts";
import type { Recorder } from "./recorder.ts";
import type { ResourceVisitor } from "./resource-visitor.ts";

/** What the callers of one process share. */
export interface Office {
  readonly name: string;
  readonly index: number;
  readonly locks: Locks;
  readonly recorder: Recorder;
  readonly resource: ResourceVisitor;
  readonly chance: Chance;
  readonly keys: Keys;
  readonly shortestTtlMs: number;
  readonly maxTtlMs: number;
  /** Gives it to another process. */
  hand(handed: Handed): void;
}

interface Errand {
  readonly key: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew: boolean;
  readonly holdMs: number;
}

let attempts = 0;

/** One caller: one errand after another, each with a lock. */
export class Caller {
  readonly #office: Office;

  constructor(office: Office) {
    this.#office = office;
  }

  async workUntil(isOver: () => boolean): Promise<void> {
    const { chance } = this.#office;
    while (!isOver()) {
      await this.#errand();
      await pause(chance.between(0, 12));
    }
  }

  /** Takes over what another process handed on. */
  async take(handed: Handed): Promise<void> {
    const { locks, recorder, chance } = this.#office;
    if (handed.kind === "lease") {
      const { serialized } = handed;
      const about = { key: serialized.key, kind: "adopt", waitMs: 0 } as const;
      const adopted = await recorder.ask(about, () => locks.adopt(serialized));
      await this.#useAndRelease(adopted, chance.between(0, 30));
    } else {
      const { key, attemptId } = handed;
      const options = { ttlMs: this.#office.maxTtlMs, waitMs: 1_000, attemptId };
      const about = { key, kind: "attempt", waitMs: options.waitMs, attempt: attemptId } as const;
      const repeated = await recorder.ask(about, () => locks.acquire(key, options));
      await pause(chance.between(0, 30));
      await repeated?.release();
    }
  }

  /** Gets the hot lock for the longest TTL, and lets this process be frozen between reading and writing. */
  async walkInto(ambush: () => Promise<void>, withinMs: number): Promise<void> {
    const { keys, maxTtlMs } = this.#office;
    const errand = { key: keys.hot, ttlMs: maxTtlMs, waitMs: withinMs, renew: true, holdMs: 0 };
    const recorded = await this.#ask(errand, "acquire");
    if (recorded) {
      await recorded.extend(maxTtlMs).catch(() => undefined); // it may be lost: then it is frozen all the same
      await this.#use(recorded, 0, ambush);
      await recorded.release();
    }
  }

  #errand(): Promise<void> {
    const { chance } = this.#office;
    const errand = this.#drawn();
    const lot = chance.between(0, 100);
    if (lot < 30) return this.#work(errand);
    if (lot < 60) return this.#acquire(errand, "acquire");
    if (lot < 72) return this.#acquire(errand, "try");
    if (lot < 82) return this.#abort(errand);
    if (lot < 88) return this.#attempt(errand);
    if (lot < 93) return this.#transfer(errand);
    if (lot < 98) return this.#extend(errand);
    return this.#overstay(errand);
  }

  #drawn(): Errand {
    const { chance, keys, index, shortestTtlMs, maxTtlMs } = this.#office;
    const own = keys.own[index] as string;
    const key = chance.pick([keys.hot, keys.hot, keys.hot, chance.pick(keys.lukewarm), own]);
    const ttlMs = chance.whole(shortestTtlMs, maxTtlMs);
    return {
      key,
      ttlMs,
      waitMs: chance.pick([chance.whole(50, 500), chance.whole(500, 2_000), 2_000]),
      renew: chance.happens(0.8),
      holdMs: this.#holdMs(ttlMs),
    };
  }

  /** Mostly short; now and then longer than the TTL. */
  #holdMs(ttlMs: number): number {
    const { chance } = this.#office;
    const lot = chance.between(0, 100);
    if (lot < 85) return chance.between(0, 5);
    return lot < 99 ? chance.between(5, 80) : chance.between(80, ttlMs * 1.2);
  }

  /** By `withLock`. */
  async #work(errand: Errand): Promise<void> {
    const { locks, recorder } = this.#office;
    const { key, waitMs } = errand;
    const ask = recorder.asked({ key, kind: "work", waitMs });
    let recorded: RecordedLease | undefined;
    const done = locks.withLock(key, optionsOf(errand), async (lease) => {
      recorded = new RecordedLease(recorder, ask, lease);
      await this.#use(recorded, errand.holdMs);
      recorded.releasing();
      return true;
    });
    await done.catch((error: unknown) => {
      if (!recorded) {
        recorder.refused(ask, recorder.codeOf(error));
      }
    });
    await recorded?.released(done);
  }

  async #acquire(errand: Errand, kind: "acquire" | "try"): Promise<void> {
    const recorded = await this.#ask(errand, kind);
    await this.#useAndRelease(recorded, errand.holdMs);
  }

  /** Loses patience, maybe after the grant. */
  async #abort(errand: Errand): Promise<void> {
    const { chance } = this.#office;
    const patience = new AbortController();
    const timer = setTimeout(
      () => {
        patience.abort();
      },
      chance.pick([chance.between(0, 10), chance.between(0, 300)]),
    );
    const recorded = await this.#ask(errand, "acquire", { signal: patience.signal });
    clearTimeout(timer);
    await this.#useAndRelease(recorded, errand.holdMs);
  }

  /** Names the attempt and repeats it: here, in another process, or after it failed. */
  async #attempt(errand: Errand): Promise<void> {
    const { name, chance, hand } = this.#office;
    attempts += 1;
    const attemptId = `${name}:${attempts}`;
    const first = await this.#ask(errand, "attempt", { attemptId });
    if (!first) {
      await this.#useAndRelease(await this.#ask(errand, "attempt", { attemptId }), errand.holdMs);
      return;
    }
    if (chance.happens(0.3)) {
      hand({ kind: "attempt", key: errand.key, attemptId });
    } else if (chance.happens(0.5)) {
      const second = await this.#ask(errand, "attempt", { attemptId });
      await this.#useAndRelease(first, errand.holdMs);
      await second?.release();
      return;
    }
    await this.#useAndRelease(first, errand.holdMs);
  }

  async #transfer(errand: Errand): Promise<void> {
    const recorded = await this.#ask(errand, "acquire");
    if (recorded && recorded.lease.remainingMs() > 0) {
      this.#office.hand({ kind: "lease", serialized: recorded.transfer() });
    } else {
      await recorded?.release();
    }
  }

  async #extend(errand: Errand): Promise<void> {
    const { recorder, chance } = this.#office;
    const recorded = await this.#ask(errand, "acquire");
    if (recorded) {
      await pause(errand.holdMs / 2);
      await recorded.extend(chance.whole(100, errand.ttlMs)).catch((error: unknown) => {
        const code = recorder.codeOf(error);
        if (code.startsWith("strange")) {
          throw error;
        }
      });
      await this.#useAndRelease(recorded, errand.holdMs / 2);
    }
  }

  /** Holds it without renewal until it is told that it is over. */
  async #overstay(errand: Errand): Promise<void> {
    const ttlMs = this.#office.shortestTtlMs;
    const recorded = await this.#ask({ ...errand, ttlMs, renew: false }, "acquire");
    if (recorded) {
      await recorded.lost();
      await recorded.release();
    }
  }

  #ask(
    errand: Errand,
    kind: AskKind,
    more: Pick<AcquireOptions, "signal" | "attemptId"> = {},
  ): Promise<RecordedLease | undefined> {
    const { locks, recorder } = this.#office;
    const { key, waitMs, ttlMs, renew } = errand;
    const { attemptId } = more;
    const options = { ttlMs, renew, ...more };
    if (kind === "try") {
      return recorder.ask({ key, kind, waitMs: 0 }, () => locks.tryAcquire(key, options));
    }
    const attempt = attemptId === undefined ? {} : { attempt: attemptId };
    return recorder.ask({ key, kind, waitMs, ...attempt }, () => locks.acquire(key, { ...options, waitMs }));
  }

  async #useAndRelease(recorded: RecordedLease | undefined, holdMs: number): Promise<void> {
    if (recorded) {
      await this.#use(recorded, holdMs);
      await recorded.release();
    }
  }

  /**
   * Reads both counters, works, and writes them. It looks at its lease before, and not between: a process that is paused there
   * would not have seen the loss either, and the resource has to be safe all the same.
   */
  async #use({ lease, ask }: RecordedLease, holdMs: number, inBetween?: () => Promise<void>): Promise<void> {
    const { resource, recorder } = this.#office;
    const { key, fencingToken } = lease;
    if (lease.remainingMs() === 0) {
      return;
    }
    const read = await resource.read(key, fencingToken);
    await pause(holdMs);
    await inBetween?.();
    const counted = { checked: read.checked + 1, unchecked: read.unchecked + 1 };
    const written = await resource.write(key, fencingToken, counted);
    recorder.write({
      e: "used",
      at: recorder.clock.now(),
      ask,
      accepted: read.accepted && written.accepted,
    });
  }
}

function optionsOf({ ttlMs, waitMs, renew }: Errand): { ttlMs: number; waitMs: number; renew: boolean } {
  return { ttlMs, waitMs, renew };
}
