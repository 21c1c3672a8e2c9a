import { setTimeout as pause } from "node:timers/promises";

import { lead } from "./election-campaign.ts";
import type { Handed } from "./client-protocol.ts";
import { aboutOf, drawErrand, type Errand } from "./task.ts";
import type { AskKind } from "../judge/history.ts";
import { acquire, tryAcquire, withLock, type Lock } from "./lock.ts";
import { reenter } from "./reentry.ts";
import { freshName, type Office } from "./client-state.ts";
import type { RecordedLease } from "./recorded-lease.ts";
import { use } from "./critical-section.ts";

type Working = Pick<Errand, "holdMs" | "downgrades">;

/** How one asks. */
interface Asking {
  readonly signal?: AbortSignal;
  readonly attemptId?: string;
}

/** How many of the errands are with a latch. */
const latchShare = 0.08;

/** One caller: one errand after another, each with a lock. */
export class Caller {
  readonly #office: Office;

  constructor(office: Office) {
    this.#office = office;
  }

  async workUntil(isOver: () => boolean): Promise<void> {
    const { chance, latches } = this.#office;
    while (!isOver()) {
      await (latches && chance.happens(latchShare) ? latches.visit() : this.#errand());
      await pause(chance.between(0, 12));
    }
  }

  /** Takes over what another process handed on. */
  async take(handed: Handed): Promise<void> {
    const { locks, recorder, chance } = this.#office;
    if (handed.kind === "lease") {
      const { serialized, lock } = handed;
      const about = { ...aboutOf(lock), kind: "adopt", waitMs: 0 } as const;
      const adopted = await recorder.ask(about, () => locks.adopt(serialized));
      await this.#useAndRelease(adopted, { holdMs: chance.between(0, 30), downgrades: false });
    } else {
      const { lock, attemptId } = handed;
      const options = { ttlMs: this.#office.maxTtlMs, waitMs: 1_000, attemptId };
      const { waitMs } = options;
      const about = { ...aboutOf(lock), kind: "attempt", waitMs, attempt: attemptId } as const;
      const repeated = await recorder.ask(about, () => acquire(locks, lock, options));
      await pause(chance.between(0, 30));
      await repeated?.release();
    }
  }

  /** Gets a lock for the longest TTL, and lets this process be frozen between reading and writing. */
  async walkInto(lock: Lock, ambush: () => Promise<void>, withinMs: number): Promise<void> {
    const { maxTtlMs } = this.#office;
    const errand = { lock, ttlMs: maxTtlMs, waitMs: withinMs, renew: true, holdMs: 0, downgrades: false };
    const recorded = await this.#ask(errand, "acquire");
    if (recorded) {
      await recorded.extend(maxTtlMs).catch(() => undefined); // it may be lost: then it is frozen all the same
      await use(this.#office, recorded, 0, ambush);
      await recorded.release();
    }
  }

  #errand(): Promise<void> {
    const { chance } = this.#office;
    const errand = drawErrand(this.#office);
    const { as } = errand.lock;
    if (as === "election") return lead(this.#office, errand);
    if (as === "reentrant") return reenter(this.#office, errand);
    const lot = chance.between(0, 100);
    if (lot < 30) return this.#work(errand);
    if (lot < 60) return this.#acquire(errand, "acquire");
    if (lot < 72) return this.#acquire(errand, "try");
    if (lot < 82) return this.#abort(errand);
    if (lot < 88) return this.#attempt({ ...errand, downgrades: false }); // it might be shared, and so cannot
    if (lot < 93) return as === "all" ? this.#extend(errand) : this.#transfer(errand);
    if (lot < 98) return this.#extend(errand);
    return this.#overstay(errand);
  }

  /** By `withLock`. */
  async #work(errand: Errand): Promise<void> {
    const { locks, recorder } = this.#office;
    const { lock, waitMs, ttlMs, renew, holdMs } = errand;
    await recorder.work(
      { ...aboutOf(lock), kind: "work", waitMs },
      (work) => withLock(locks, lock, { ttlMs, waitMs, renew }, work),
      async (recorded) => {
        await use(this.#office, recorded, holdMs);
        return this.#downgraded(recorded, errand);
      },
    );
  }

  async #acquire(errand: Errand, kind: "acquire" | "try"): Promise<void> {
    const recorded = await this.#ask(errand, kind);
    await this.#useAndRelease(recorded, errand);
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
    await this.#useAndRelease(recorded, errand);
  }

  /** Names the attempt and repeats it: here, in another process, or after it failed. */
  async #attempt(errand: Errand): Promise<void> {
    const { chance, hand } = this.#office;
    const attemptId = freshName(this.#office);
    const first = await this.#ask(errand, "attempt", { attemptId });
    if (!first) {
      await this.#useAndRelease(await this.#ask(errand, "attempt", { attemptId }), errand);
      return;
    }
    if (chance.happens(0.3)) {
      hand({ kind: "attempt", lock: errand.lock, attemptId });
    } else if (chance.happens(0.5)) {
      const second = await this.#ask(errand, "attempt", { attemptId });
      await this.#useAndRelease(first, errand);
      await second?.release();
      return;
    }
    await this.#useAndRelease(first, errand);
  }

  async #transfer(errand: Errand): Promise<void> {
    const recorded = await this.#ask(errand, "acquire");
    if (recorded && recorded.lease.remainingMs() > 0) {
      this.#office.hand({ kind: "lease", lock: errand.lock, serialized: recorded.transfer() });
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
      await this.#useAndRelease(recorded, { ...errand, holdMs: errand.holdMs / 2 });
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

  #ask(errand: Errand, kind: AskKind, asking: Asking = {}): Promise<RecordedLease | undefined> {
    const { locks, recorder } = this.#office;
    const { lock, waitMs, ttlMs, renew } = errand;
    const options = { ttlMs, renew, ...asking };
    if (kind === "try") {
      const about = { ...aboutOf(lock), kind, waitMs: 0 };
      return recorder.ask(about, () => tryAcquire(locks, lock, options));
    }
    const attempt = asking.attemptId === undefined ? {} : { attempt: asking.attemptId };
    const about = { ...aboutOf(lock), kind, waitMs, ...attempt };
    return recorder.ask(about, () => acquire(locks, lock, { ...options, waitMs }));
  }

  async #useAndRelease(recorded: RecordedLease | undefined, errand: Working): Promise<void> {
    if (recorded) {
      await use(this.#office, recorded, errand.holdMs);
      await (await this.#downgraded(recorded, errand)).release();
    }
  }

  /** A writer that is to become a reader reads as such for as long; others stay as they are. */
  async #downgraded(recorded: RecordedLease, { downgrades, holdMs }: Working): Promise<RecordedLease> {
    const reader = downgrades ? await recorded.downgrade() : undefined;
    if (reader) {
      await use(this.#office, reader, holdMs);
    }
    return reader ?? recorded;
  }
}
