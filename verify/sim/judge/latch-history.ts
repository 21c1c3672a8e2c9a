import type { Findings } from "./findings.ts";
import type { LatchSnapshot, LatchObserver } from "./latch-watch.ts";

/** Follows the latches of one key by the data of the engine, and checks the results of callers against that data. */
export class LatchHistory {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #observer: LatchObserver;
  readonly #bounds: LatchBounds;
  readonly #generations: LatchGeneration[] = [];
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
      remainingBefore: new Map(this.#generations.map((generation) => [generation, generation.remaining])),
      mayCreate: handle.generations === undefined,
      isSettled: false,
      settledAt: Infinity,
      latestAt: Infinity,
    };
    this.#calls.push(call);
    return call;
  }

  /** The call has counted down, with this remaining count as its result. */
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
      this.#fail(check, call, `got the remaining count ${remaining}, which fits no latch of its object`);
    } else if (
      generations.length === 1 &&
      generation.counted < Math.min(generation.total, generation.confirmedAttempts.size)
    ) {
      this.#fail(
        "count",
        call,
        `counted down, but the latch counts ${generation.counted} of ${generation.confirmedAttempts.size} attempts`,
      );
    }
    call.handle.generations = generations.length > 0 ? generations : call.handle.generations;
  }

  /** The wait returned. */
  opened(call: LatchCall): void {
    this.#settled(call);
    const generations = this.#generations.filter(
      (generation) => generation.openAt < Infinity && this.#mayReportOn(call, generation),
    );
    if (generations.length === 0) {
      this.#fail("latch", call, "returned from its wait, but no latch of its object is open");
    } else {
      call.handle.generations = generations;
    }
  }

  /** The call failed because its latch has expired. */
  expired(call: LatchCall): void {
    this.#settled(call);
    // The object may know its latch from the reply to another call that is still in flight.
    const generations =
      call.handle.generations ??
      this.#generations.filter(({ endedAtMs }) => endedAtMs >= call.handle.firstUsedAt);
    if (!generations.some(({ endedAtMs }) => endedAtMs < Infinity)) {
      this.#fail("latch", call, "failed with an expired latch, but no latch of its object has expired");
    }
  }

  /** The call failed, or its caller aborted it. */
  refused(call: LatchCall): void {
    this.#settled(call);
  }

  /** The client is dead. */
  clientDied(client: number): void {
    this.#calls.filter((call) => call.handle.client === client && !call.isSettled).forEach(this.#settle);
  }

  /** Runs after each event. */
  check(): void {
    const { now } = this.#findings;
    this.#calls = this.#calls.filter(({ latestAt }) => latestAt >= now);
    const snapshot = this.#observer.read();
    const last = this.#generations.at(-1);
    if (last && last.endedAtMs === Infinity && last.id !== snapshot?.id) {
      this.#generationEnded(last);
    }
    if (snapshot && snapshot.id !== this.#generations.at(-1)?.id) {
      this.#generationCreated(snapshot);
    } else if (snapshot && last) {
      this.#checkProgress(last, snapshot);
    }
    this.#checkDelays();
    this.#checkResidue();
  }

  #generationEnded(generation: LatchGeneration): void {
    const { now } = this.#findings;
    const remainingMs = generation.endsAt - this.#observer.now();
    generation.endedAtMs = now;
    if (this.#bounds.isDurable && remainingMs > 0) {
      this.#findings.add(
        "latch",
        `${this.#key}: a latch ended ${remainingMs.toFixed(0)} ms before its expiry`,
      );
    } else if (remainingMs > -1) {
      // Calls may have counted in the last moment, after the previous check.
      generation.setRemaining(Math.max(0, generation.remaining - this.#mayCount(generation).size), now);
    }
  }

  /** Only a call of an object without a latch may create a latch, with the TTL of the object. */
  #generationCreated(snapshot: LatchSnapshot): void {
    const forMs = snapshot.endsAt - this.#observer.now();
    const generation = new LatchGeneration({ ...snapshot, remaining: snapshot.total }, this.#findings.now);
    this.#generations.push(generation);
    const isExplained = this.#calls.some(
      ({ mayCreate, handle }) =>
        mayCreate && handle.count === snapshot.total && Math.abs(handle.ttlMs - forMs) <= roundingMs,
    );
    if (!isExplained) {
      this.#findings.add(
        "latch",
        `${this.#key}: a latch of ${forMs.toFixed(0)} ms was created without a call for it`,
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
      this.#findings.add("latch", `${this.#key}: a latch changed from ${was} to ${is}`);
    } else if (snapshot.remaining < generation.remaining) {
      this.#checkCounts(generation, generation.remaining - snapshot.remaining);
    }
    generation.setRemaining(snapshot.remaining, this.#findings.now);
  }

  /** Each attempt counts once, while its call is in flight. */
  #checkCounts(generation: LatchGeneration, decrease: number): void {
    const attempts = this.#mayCount(generation);
    if (attempts.size < decrease) {
      this.#findings.add(
        "count",
        `${this.#key}: the count fell by ${decrease}, with ${attempts.size} possible attempts`,
      );
    } else if (attempts.size === decrease) {
      attempts.forEach((attempt) => generation.confirmedAttempts.add(attempt));
    }
  }

  /**
   * The attempts in flight that have not counted yet. A call of an object without a latch may be executed again on a later latch.
   */
  #mayCount(generation: LatchGeneration): ReadonlySet<string> {
    const calls = this.#calls.filter(
      ({ handle, mayCreate }) => mayCreate || (handle.generations?.includes(generation) ?? true),
    );
    const attempts = calls.flatMap(({ attempt }) => attempt ?? []);
    return new Set(attempts.filter((attempt) => !generation.confirmedAttempts.has(attempt)));
  }

  /** A wait for an open or expired latch returns in time. */
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
        this.#fail(
          "progress",
          call,
          `still waits ${(this.#findings.now - from).toFixed(0)} ms after the end`,
        );
        this.#settle(call);
      }
    }
  }

  #checkResidue(): void {
    const waiters = this.#observer.waiters?.() ?? 0;
    const most = this.#calls.filter(({ attempt }) => attempt === undefined).length;
    if (this.#bounds.dequeuesOnTimeout && waiters > most) {
      this.#findings.add(
        "residue",
        `${this.#key}: the queue has ${waiters} entries for ${most} waiting calls`,
      );
    }
  }

  /** Whether the call may report that latch, from its own reply or from a late reply to another call of the same object. */
  #mayReportOn(call: LatchCall, generation: LatchGeneration): boolean {
    const { handle, requestedAt } = call;
    const others = this.#calls.filter((other) => other.handle === handle && other.settledAt >= requestedAt);
    return [call, ...others].some((one) => this.#generationsOf(one).includes(generation));
  }

  /** The latches to which the call may belong. */
  #generationsOf({ handle, requestedAt }: LatchCall): readonly LatchGeneration[] {
    return (handle.generations ?? this.#generations).filter(({ endedAtMs }) => endedAtMs >= requestedAt);
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
    const caller = `client ${handle.client}, with a call since ${requestedAt.toFixed(3)},`;
    this.#findings.add(
      check,
      `${this.#key}: ${caller} ${attempt === undefined ? "" : `as ${attempt} `}${text}`,
    );
  }
}

/** Servers store times in whole ms. */
const roundingMs = 2;

/** One `Latch` object of a caller. It belongs to the latch of its first call. */
export interface LatchHandle {
  readonly client: number;
  readonly count: number;
  readonly ttlMs: number;
  /** When the object was first used. */
  readonly firstUsedAt: number;
  /** The latches to which the object may belong; undefined: not known yet. */
  generations: readonly LatchGeneration[] | undefined;
}

/** A call in flight, or a call that the engine may still execute. */
export interface LatchCall {
  readonly handle: LatchHandle;
  /** The attempt that counts down; undefined: the call waits. */
  readonly attempt: string | undefined;
  readonly requestedAt: number;
  /** The remaining count of each latch when the call started. */
  readonly remainingBefore: ReadonlyMap<LatchGeneration, number>;
  /** The object belonged to no latch yet, so the call may create a latch. */
  readonly mayCreate: boolean;
  isSettled: boolean;
  settledAt: number;
  /** When the engine may execute the call at the latest. */
  latestAt: number;
}

/** The bounds that the engine keeps; times are ms. */
export interface LatchBounds {
  /** How long after its start a countdown, or after its reply a wait, may still be executed. */
  readonly latestMs: number;
  /** The engine loses no data. */
  readonly isDurable: boolean;
  /** A waiter that stops waiting removes its queue entry. */
  readonly dequeuesOnTimeout: boolean;
  /** How soon after the end of a latch its waiters return, and since when this bound applies. */
  openBound(): { readonly since: number; readonly ms: number };
}

/** One latch, from its first use to its end. */
export class LatchGeneration {
  readonly id: string;
  readonly total: number;
  readonly endsAt: number;
  /** The attempts that have certainly counted. */
  readonly confirmedAttempts: Set<string> = new Set();
  remaining: number;
  openAt: number = Infinity;
  endedAtMs: number = Infinity;

  constructor({ id, total, remaining, endsAt }: LatchSnapshot, now: number) {
    this.id = id;
    this.total = total;
    this.endsAt = endsAt;
    this.remaining = remaining;
    this.setRemaining(remaining, now);
  }

  get counted(): number {
    return this.total - this.remaining;
  }

  /** When waiting ended: by the opening of the latch, or by its expiry. */
  get endedAt(): number {
    return Math.min(this.openAt, this.endedAtMs);
  }

  setRemaining(remaining: number, now: number): void {
    this.remaining = remaining;
    if (remaining === 0) {
      this.openAt = Math.min(this.openAt, now);
    }
  }
}
