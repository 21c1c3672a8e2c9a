import type { Lease, LeaseLostError, WriteLease } from "holdfast";

import type { LeaseRequest } from "../judge/history.ts";
import type { Recorder } from "./recorder.ts";

/** So long after the end of validity a holder must have been told. A process that could not run is told before this timer, too. */
const reportGraceMs = 50;
/** Of a process that stood still between reading the clock and setting a timer, that timer counts from when it runs again. */
const timerGrainMs = 2;

/** A lease in the hand of a caller; whatever becomes of it is written down when it happens. */
export class RecordedLease {
  readonly lease: Lease;
  readonly requestId: number;
  readonly request: LeaseRequest;
  readonly #recorder: Recorder;
  #validUntil: number;
  #isEnded = false;
  #expiryCheck: NodeJS.Timeout | undefined;
  readonly #onLoss = (): void => {
    this.#end();
    const { reason } = this.lease.signal.reason as LeaseLostError;
    this.#recorder.write({ e: "lost", at: this.#recorder.clock.now(), requestId: this.requestId, reason });
  };

  constructor(recorder: Recorder, requestId: number, request: LeaseRequest, lease: Lease) {
    this.lease = lease;
    this.requestId = requestId;
    this.request = request;
    this.#recorder = recorder;
    this.#validUntil = lease.validUntil;
    const at = recorder.clock.now();
    const validUntil = recorder.clock.fromPerformanceTime(this.#validUntil);
    recorder.write({
      e: "granted",
      at,
      requestId,
      token: String(lease.fencingToken),
      validUntil,
      ...tokensOf(lease),
    });
    recorder.leases.add(this);
    lease.signal.addEventListener("abort", this.#onLoss);
    if (lease.signal.aborted) {
      this.#onLoss();
    } else {
      this.#watch();
    }
  }

  /** Writes down where its validity ends, if that has moved. */
  recordValidity(): void {
    const { validUntil } = this.lease;
    if (!this.#isEnded && validUntil !== this.#validUntil) {
      this.#validUntil = validUntil;
      const { clock } = this.#recorder;
      this.#recorder.write({
        e: "valid",
        at: clock.now(),
        requestId: this.requestId,
        validUntil: clock.fromPerformanceTime(validUntil),
      });
    }
  }

  async extend(ttlMs: number): Promise<void> {
    await this.lease.extend(ttlMs);
    this.recordValidity();
  }

  async release(): Promise<void> {
    this.releasing();
    await this.released(this.lease.release());
  }

  /** To be called before the lease is released by another. */
  releasing(): void {
    const { clock } = this.#recorder;
    const validUntil = clock.fromPerformanceTime(this.lease.validUntil);
    this.#recorder.write({ e: "releasing", at: clock.now(), requestId: this.requestId, validUntil });
    this.#end();
  }

  async released(answer: Promise<unknown>): Promise<void> {
    const result = await answer.then(String, (error: unknown) => this.#recorder.codeOf(error));
    this.#recorder.write({
      e: "released",
      at: this.#recorder.clock.now(),
      requestId: this.requestId,
      answer: result,
    });
  }

  /** From here on it is another's. */
  transfer(): ReturnType<Lease["transfer"]> {
    this.#recorder.write({ e: "transferred", at: this.#recorder.clock.now(), requestId: this.requestId });
    const serialized = this.lease.transfer();
    this.#end();
    return serialized;
  }

  /** Of a writer: lets readers in. @returns the reader that it became; undefined where it was lost */
  async downgrade(): Promise<RecordedLease | undefined> {
    this.#recorder.write({ e: "downgraded", at: this.#recorder.clock.now(), requestId: this.requestId });
    this.#end();
    const { key } = this.request;
    const request: LeaseRequest = { key, kind: "downgrade", waitMs: 0, lockKind: "read" };
    return this.#recorder.acquire(request, () => (this.lease as WriteLease).downgrade());
  }

  /** Resolves when it is known to be lost. */
  lost(): Promise<void> {
    const { signal } = this.lease;
    return signal.aborted
      ? Promise.resolve()
      : new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            resolve();
          });
        });
  }

  #watch(): void {
    const leftMs = this.lease.validUntil + reportGraceMs - performance.now();
    this.#expiryCheck = setTimeout(
      () => {
        this.#scheduleCheck();
      },
      Math.max(1, Math.ceil(leftMs)),
    );
  }

  /**
   * Looks behind all timers that are due once the validity is seen to be over: in the phase of the event loop that follows theirs, as
   * Node does not run them in the order of their times. A process may stand still between any two phases, and read an extension in
   * between that is over as well: only timers that are due behind that have to tell.
   */
  #scheduleCheck(): void {
    this.recordValidity();
    const { validUntil } = this.lease;
    if (validUntil + reportGraceMs > performance.now()) {
      this.#watch();
      return;
    }
    this.#expiryCheck = setTimeout(() => {
      setImmediate(() => {
        this.#checkLossReported(validUntil);
      });
    }, timerGrainMs);
  }

  /** @param expectedUntil the end that was seen to be over before the last timers ran */
  #checkLossReported(expectedUntil: number): void {
    if (this.#isEnded) {
      return;
    }
    if (this.lease.validUntil !== expectedUntil) {
      this.#scheduleCheck();
      return;
    }
    const { clock } = this.#recorder;
    this.#recorder.write({
      e: "unreported",
      at: clock.now(),
      requestId: this.requestId,
      validUntil: clock.fromPerformanceTime(this.lease.validUntil),
    });
  }

  #end(): void {
    this.#isEnded = true;
    clearTimeout(this.#expiryCheck);
    this.#recorder.leases.delete(this);
    this.lease.signal.removeEventListener("abort", this.#onLoss);
  }
}

/** Of several keys: that of each. */
function tokensOf({ keys, fencingTokens }: Lease): { tokens?: Record<string, string> } {
  return keys.length > 1
    ? { tokens: Object.fromEntries(Array.from(fencingTokens, ([key, token]) => [key, String(token)])) }
    : {};
}
