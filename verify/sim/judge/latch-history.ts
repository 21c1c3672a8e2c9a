import type { Findings } from "./findings.ts";
import { LatchGeneration } from "./latch-life.ts";
import type { LatchSnapshot, LatchObserver } from "./latch-snapshot.ts";

/** One `Latch` of a caller, which stays with the latch that it met first. */
export interface LatchHandle {
  readonly client: number;
  readonly count: number;
  readonly ttlMs: number;
  /** When it was used first. */
  readonly firstUsedAt: number;
  /** It is one of these; undefined: nobody knows yet. */
  generations: readonly LatchGeneration[] | undefined;
}

/** A call under way, or one that may still be carried out. */
export interface LatchCall {
  readonly handle: LatchHandle;
  /** That counts down; undefined: who waits. */
  readonly attempt: string | undefined;
  readonly requestedAt: number;
  /** What was left then, of the latch that there was. */
  readonly remainingBefore: ReadonlyMap<LatchGeneration, number>;
  /** Its view had met no latch: it may begin one. */
  readonly mayCreate: boolean;
  isSettled: boolean;
  settledAt: number;
  /** Until when it may be carried out. */
  latestAt: number;
}

/** What is promised of times, ms. */
export interface LatchBounds {
  /** How long after it was asked, or after who waits was answered, a call may be carried out. */
  readonly latestMs: number;
  /** The engine forgets nothing. */
  readonly isDurable: boolean;
  /** Who does not wait any more does not stand there. */
  readonly dequeuesOnTimeout: boolean;
  /** From when on who waits is let go within so long of its end. */
  openBound(): { readonly since: number; readonly ms: number };
}

/** Watches the latches of one key by what the engine has, and judges by that what callers are told. */
export class LatchHistory {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #observer: LatchObserver;
  readonly #bounds: LatchBounds;
  readonly #lives: LatchGeneration[] = [];
  #calls: LatchCall[] = [];

  constructor(findings: Findings, key: string, observer: LatchObserver, bounds: LatchBounds) {
    this.#findings = findings;
    this.#key = key;
    this.#observer = observer;
    this.#bounds = bounds;
  }

  callStarted(handle: LatchHandle, attempt: string | undefined): LatchCall {
    this.check();
    const call: LatchCall = {
      handle,
      attempt,
      requestedAt: this.#findings.now,
      remainingBefore: new Map(this.#lives.map((generation) => [generation, generation.remaining])),
      mayCreate: handle.generations === undefined,
      isSettled: false,
      settledAt: Infinity,
      latestAt: Infinity,
    };
    this.#calls.push(call);
    return call;
  }

  /** It has counted, and so much is left. */
  counted(call: LatchCall, remaining: number): void {
    this.#settled(call);
    const possible = this.#generationsOf(call);
    const generations = possible.filter((generation) => {
      return (
        generation.remaining <= remaining &&
        remaining <= (call.remainingBefore.get(generation) ?? generation.total)
      );
    });
    const [generation] = generations;
    if (generations.length === 1 && generation) {
      generation.confirmedAttempts.add(call.attempt as string);
    }
    if (!generation) {
      const check = possible.length === 0 ? "latch" : "count";
      this.#fail(check, call, `was told that ${remaining} are left, as of no latch that it may have met`);
    } else if (
      generations.length === 1 &&
      generation.counted < Math.min(generation.total, generation.confirmedAttempts.size)
    ) {
      this.#fail(
        "count",
        call,
        `was told so, and of ${generation.confirmedAttempts.size} attempts ${generation.counted} count`,
      );
    }
    call.handle.generations = generations.length > 0 ? generations : call.handle.generations;
  }

  /** Who waited is let go. */
  opened(call: LatchCall): void {
    this.#settled(call);
    const generations = this.#lives.filter(
      (generation) => generation.openAt < Infinity && this.#mayReportOn(call, generation),
    );
    if (generations.length === 0) {
      this.#fail("latch", call, "was let go, and no latch that it may have met is open");
    } else {
      call.handle.generations = generations;
    }
  }

  /** It was told that its latch is over. */
  expired(call: LatchCall): void {
    this.#settled(call);
    // What it met it may have been told by an answer to another call, which goes on.
    const generations =
      call.handle.generations ?? this.#lives.filter(({ endedAtMs }) => endedAtMs >= call.handle.firstUsedAt);
    if (!generations.some(({ endedAtMs }) => endedAtMs < Infinity)) {
      this.#fail("latch", call, "was told that its latch is over, and none is that it may have met");
    }
  }

  /** It was refused, or ended. */
  refused(call: LatchCall): void {
    this.#settled(call);
  }

  /** A client never does anything again. */
  clientDied(client: number): void {
    this.#calls.filter((call) => call.handle.client === client && !call.isSettled).forEach(this.#settle);
  }

  /** After everything that happens. */
  check(): void {
    const { now } = this.#findings;
    this.#calls = this.#calls.filter(({ latestAt }) => latestAt >= now);
    const snapshot = this.#observer.read();
    const last = this.#lives.at(-1);
    if (last && last.endedAtMs === Infinity && last.id !== snapshot?.id) {
      this.#generationEnded(last);
    }
    if (snapshot && snapshot.id !== this.#lives.at(-1)?.id) {
      this.#generationCreated(snapshot);
    } else if (snapshot && last) {
      this.#checkProgress(last, snapshot);
    }
    this.#checkDelays();
    this.#checkResidue();
  }

  #generationEnded(generation: LatchGeneration): void {
    const { now } = this.#findings;
    const leftMs = generation.endsAt - this.#observer.now();
    generation.endedAtMs = now;
    if (this.#bounds.isDurable && leftMs > 0) {
      this.#findings.add("latch", `${this.#key}: a latch is gone ${leftMs.toFixed(0)} ms before its end`);
    } else if (leftMs > -1) {
      generation.setRemaining(Math.max(0, generation.remaining - this.#mayCount(generation).size), now); // in its last moment, unseen
    }
  }

  /** Only who has met none may begin one, and for as long as he says. */
  #generationCreated(snapshot: LatchSnapshot): void {
    const forMs = snapshot.endsAt - this.#observer.now();
    const generation = new LatchGeneration({ ...snapshot, remaining: snapshot.total }, this.#findings.now);
    this.#lives.push(generation);
    const isExplained = this.#calls.some(
      ({ mayCreate, handle }) =>
        mayCreate && handle.count === snapshot.total && Math.abs(handle.ttlMs - forMs) <= roundingMs,
    );
    if (!isExplained) {
      this.#findings.add(
        "latch",
        `${this.#key}: a latch of ${forMs.toFixed(0)} ms began that nobody asked for`,
      );
    }
    this.#checkProgress(generation, snapshot);
  }

  #checkProgress(generation: LatchGeneration, snapshot: LatchSnapshot): void {
    if (
      snapshot.remaining > generation.remaining ||
      snapshot.total !== generation.total ||
      snapshot.endsAt !== generation.endsAt
    ) {
      const [was, is] = [generation, snapshot].map(
        ({ remaining, total, endsAt }) => `${remaining} of ${total} until ${endsAt}`,
      );
      this.#findings.add("latch", `${this.#key}: a latch was ${was}, and is ${is}`);
    } else if (snapshot.remaining < generation.remaining) {
      this.#checkCounts(generation, generation.remaining - snapshot.remaining);
    }
    generation.setRemaining(snapshot.remaining, this.#findings.now);
  }

  /** Each attempt counts once, while its call is under way. */
  #checkCounts(generation: LatchGeneration, decrease: number): void {
    const attempts = this.#mayCount(generation);
    if (attempts.size < decrease) {
      this.#findings.add("count", `${this.#key}: ${decrease} counted where ${attempts.size} may have`);
    } else if (attempts.size === decrease) {
      attempts.forEach((attempt) => generation.confirmedAttempts.add(attempt));
    }
  }

  /** What is under way, and has not counted yet. Who had met none when he asked may be carried out again where another latch began. */
  #mayCount(generation: LatchGeneration): ReadonlySet<string> {
    const calls = this.#calls.filter(
      ({ handle, mayCreate }) => mayCreate || (handle.generations?.includes(generation) ?? true),
    );
    const attempts = calls.flatMap(({ attempt }) => attempt ?? []);
    return new Set(attempts.filter((attempt) => !generation.confirmedAttempts.has(attempt)));
  }

  /** Who waits for what is open, or over, is told. */
  #checkDelays(): void {
    const { since, ms } = this.#bounds.openBound();
    for (const call of ms === Infinity ? [] : this.#calls) {
      const ended = this.#generationsOf(call).map(({ endedAt }) => endedAt);
      const from = Math.max(since, call.requestedAt, ...ended);
      if (
        !call.isSettled &&
        call.attempt === undefined &&
        ended.length > 0 &&
        this.#findings.now - from > ms
      ) {
        this.#fail("progress", call, `waits for ${(this.#findings.now - from).toFixed(0)} ms after the end`);
        this.#settle(call);
      }
    }
  }

  #checkResidue(): void {
    const waiters = this.#observer.waiters?.() ?? 0;
    const most = this.#calls.filter(({ attempt }) => attempt === undefined).length;
    if (this.#bounds.dequeuesOnTimeout && waiters > most) {
      this.#findings.add("residue", `${this.#key}: ${waiters} stand in the queue where ${most} wait`);
    }
  }

  /** Whether it may be told of that latch: it may have met it, or shares its view with a call that has, and whose message was late. */
  #mayReportOn(call: LatchCall, generation: LatchGeneration): boolean {
    const { handle, requestedAt } = call;
    const others = this.#calls.filter((other) => other.handle === handle && other.settledAt >= requestedAt);
    return [call, ...others].some((one) => this.#generationsOf(one).includes(generation));
  }

  /** Which latches it may be about. */
  #generationsOf({ handle, requestedAt }: LatchCall): readonly LatchGeneration[] {
    return (handle.generations ?? this.#lives).filter(({ endedAtMs }) => endedAtMs >= requestedAt);
  }

  #settled(call: LatchCall): void {
    this.check();
    this.#settle(call);
  }

  readonly #settle = (call: LatchCall): void => {
    const { now } = this.#findings;
    call.isSettled = true;
    call.settledAt = now;
    call.latestAt = Math.max(
      now,
      (call.attempt === undefined ? now : call.requestedAt) + this.#bounds.latestMs,
    );
  };

  #fail(
    check: "count" | "latch" | "progress",
    { handle, attempt, requestedAt }: LatchCall,
    text: string,
  ): void {
    const caller = `client ${handle.client}, who asked at ${requestedAt.toFixed(3)}`;
    this.#findings.add(
      check,
      `${this.#key}: ${caller} ${attempt === undefined ? "" : `as ${attempt} `}${text}`,
    );
  }
}

/** Times are kept in whole ms. */
const roundingMs = 2;
