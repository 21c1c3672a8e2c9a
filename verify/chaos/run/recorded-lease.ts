import type { Lease, LeaseLostError, WriteLease } from "holdfast";

import type { LeaseRequest } from "../judge/history.ts";
import type { ClientLog } from "./client-log.ts";

/** A loss must be reported this long after the end of validity. A stalled process also reports the loss before this timer. */
const reportGraceMs = 50;
/** If the process stalls between reading the clock and setting a timer, the timer counts from the end of the stall. */
const timerGrainMs = 2;

/** The process's record of its leases and of their requests. */
export interface LeaseRecorder extends ClientLog {
  /** The leases in use. */
  readonly leases: Set<RecordedLease>;
  /**
   * Requests a lease, and records the result.
   * @returns undefined if the request was refused, or the lock is held
   */
  acquire(request: LeaseRequest, acquire: () => Promise<Lease | null>): Promise<RecordedLease | undefined>;
  /** The code of the error of a call. For an error that is neither from the library nor our own abort, the whole error. */
  codeOf(error: unknown): string;
}

/** A lease in use. Every change of the lease is recorded when it happens. */
export class RecordedLease {
  readonly lease: Lease;
  readonly requestId: number;
  readonly request: LeaseRequest;
  readonly #recorder: LeaseRecorder;
  #validUntil: number;
  #isEnded = false;
  #expiryCheck: NodeJS.Timeout | undefined;
  readonly #onLoss = (): void => {
    this.#end();
    const { reason } = this.lease.signal.reason as LeaseLostError;
    this.#recorder.write({ e: "lost", at: this.#recorder.clock.now(), requestId: this.requestId, reason });
  };

  constructor(recorder: LeaseRecorder, requestId: number, request: LeaseRequest, lease: Lease) {
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

  /** Records the end of validity, if it has moved. */
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

  /** Call this before other code releases the lease. */
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

  /** From then on the lease belongs to another process. */
  transfer(): ReturnType<Lease["transfer"]> {
    this.#recorder.write({ e: "transferred", at: this.#recorder.clock.now(), requestId: this.requestId });
    const serialized = this.lease.transfer();
    this.#end();
    return serialized;
  }

  /**
   * Downgrades a writer, so that readers may enter.
   * @returns the reader lease, or undefined if the lease was lost
   */
  async downgrade(): Promise<RecordedLease | undefined> {
    this.#recorder.write({ e: "downgraded", at: this.#recorder.clock.now(), requestId: this.requestId });
    this.#end();
    const { key } = this.request;
    const request: LeaseRequest = { key, kind: "downgrade", waitMs: 0, lockKind: "read" };
    return this.#recorder.acquire(request, () => (this.lease as WriteLease).downgrade());
  }

  /** Resolves when the loss is reported. */
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
   * Once the validity has expired, checks the loss after all timers that are due. The check runs in the next phase of the event loop, because
   * Node does not run timers in the order of their times. The process may stall between two phases, and then read an extension that has
   * expired too. So only timers that are due after that must report the loss.
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

  /** @param expectedUntil the end of validity that had expired before the last timers ran */
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

/** The token of each key, if there are several keys. */
function tokensOf({ keys, fencingTokens }: Lease): { tokens?: Record<string, string> } {
  return keys.length > 1
    ? { tokens: Object.fromEntries(Array.from(fencingTokens, ([key, token]) => [key, String(token)])) }
    : {};
}
