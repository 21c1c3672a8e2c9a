import type { Lease, LeaseLostError, WriteLease } from "holdfast";

import type { Asked } from "../judge/history.ts";
import type { Recorder } from "./recorder.ts";

/** So long after the end of validity a holder must have been told. A process that could not run is told before this timer, too. */
const witnessAfterMs = 50;
/** Of a process that stood still between reading the clock and setting a timer, that timer counts from when it runs again. */
const timerGrainMs = 2;

/** A lease in the hand of a caller; whatever becomes of it is written down when it happens. */
export class RecordedLease {
  readonly lease: Lease;
  readonly ask: number;
  readonly about: Asked;
  readonly #recorder: Recorder;
  #until: number;
  #isOver = false;
  #witness: NodeJS.Timeout | undefined;
  readonly #onLoss = (): void => {
    this.#end();
    const { reason } = this.lease.signal.reason as LeaseLostError;
    this.#recorder.write({ e: "lost", at: this.#recorder.clock.now(), ask: this.ask, reason });
  };

  constructor(recorder: Recorder, ask: number, about: Asked, lease: Lease) {
    this.lease = lease;
    this.ask = ask;
    this.about = about;
    this.#recorder = recorder;
    this.#until = lease.validUntil;
    const at = recorder.clock.now();
    const until = recorder.clock.at(this.#until);
    recorder.write({ e: "granted", at, ask, token: String(lease.fencingToken), until, ...tokensOf(lease) });
    recorder.leases.add(this);
    lease.signal.addEventListener("abort", this.#onLoss);
    if (lease.signal.aborted) {
      this.#onLoss();
    } else {
      this.#watch();
    }
  }

  /** Writes down where its validity ends, if that has moved. */
  review(): void {
    const { validUntil } = this.lease;
    if (!this.#isOver && validUntil !== this.#until) {
      this.#until = validUntil;
      const { clock } = this.#recorder;
      this.#recorder.write({ e: "valid", at: clock.now(), ask: this.ask, until: clock.at(validUntil) });
    }
  }

  async extend(ttlMs: number): Promise<void> {
    await this.lease.extend(ttlMs);
    this.review();
  }

  async release(): Promise<void> {
    this.releasing();
    await this.released(this.lease.release());
  }

  /** To be called before the lease is released by another. */
  releasing(): void {
    const { clock } = this.#recorder;
    const until = clock.at(this.lease.validUntil);
    this.#recorder.write({ e: "releasing", at: clock.now(), ask: this.ask, until });
    this.#end();
  }

  async released(answer: Promise<unknown>): Promise<void> {
    const told = await answer.then(String, (error: unknown) => this.#recorder.codeOf(error));
    this.#recorder.write({ e: "released", at: this.#recorder.clock.now(), ask: this.ask, answer: told });
  }

  /** From here on it is another's. */
  transfer(): ReturnType<Lease["transfer"]> {
    this.#recorder.write({ e: "transferred", at: this.#recorder.clock.now(), ask: this.ask });
    const serialized = this.lease.transfer();
    this.#end();
    return serialized;
  }

  /** Of a writer: lets readers in. @returns the reader that it became; undefined where it was lost */
  async downgrade(): Promise<RecordedLease | undefined> {
    this.#recorder.write({ e: "downgraded", at: this.#recorder.clock.now(), ask: this.ask });
    this.#end();
    const { key } = this.about;
    const about: Asked = { key, kind: "downgrade", waitMs: 0, as: "read" };
    return this.#recorder.ask(about, () => (this.lease as WriteLease).downgrade());
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
    const leftMs = this.lease.validUntil + witnessAfterMs - performance.now();
    this.#witness = setTimeout(
      () => {
        this.#approach();
      },
      Math.max(1, Math.ceil(leftMs)),
    );
  }

  /**
   * Looks behind all timers that are due once the validity is seen to be over: in the phase of the event loop that follows theirs, as
   * Node does not run them in the order of their times. A process may stand still between any two phases, and read an extension in
   * between that is over as well: only timers that are due behind that have to tell.
   */
  #approach(): void {
    this.review();
    const { validUntil } = this.lease;
    if (validUntil + witnessAfterMs > performance.now()) {
      this.#watch();
      return;
    }
    this.#witness = setTimeout(() => {
      setImmediate(() => {
        this.#look(validUntil);
      });
    }, timerGrainMs);
  }

  /** @param seenUntil the end that was seen to be over before the last timers ran */
  #look(seenUntil: number): void {
    if (this.#isOver) {
      return;
    }
    if (this.lease.validUntil !== seenUntil) {
      this.#approach();
      return;
    }
    const { clock } = this.#recorder;
    this.#recorder.write({
      e: "untold",
      at: clock.now(),
      ask: this.ask,
      until: clock.at(this.lease.validUntil),
    });
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#witness);
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
