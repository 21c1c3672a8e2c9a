import type { LossReason } from "../errors.ts";
import { sharedClockLead } from "../runtime/clock.ts";
import type { Validity } from "../validity.ts";
import type { LeaseSlot } from "./lease-slot.ts";

/** How far the times in shared memory are ahead of the clock of this thread, ms, at most, so that a validity never becomes longer. */
export const monotonicLeadMs: number = sharedClockLead().mostMs;

/** A validity that two threads extend. It reads the shared memory, so that it needs no event loop. */
export class SharedValidity implements Validity {
  engineUntil?: number;
  #slot: LeaseSlot | undefined;
  #until: number;
  #untilWall: number;

  constructor({ until, untilWall, engineUntil }: Validity) {
    this.#until = until;
    this.#untilWall = untilWall;
    if (engineUntil !== undefined) {
      this.engineUntil = engineUntil;
    }
  }

  get until(): number {
    const times = this.#slot?.times;
    if (!times) {
      return this.loss === undefined ? this.#until : -Infinity;
    }
    return times.until - monotonicLeadMs;
  }

  set until(value: number) {
    this.#until = value;
    this.#slot?.extend({ until: value + monotonicLeadMs, untilWall: this.#untilWall });
  }

  get untilWall(): number {
    return this.#slot?.times?.untilWall ?? this.#untilWall;
  }

  set untilWall(value: number) {
    this.#untilWall = value;
    this.#slot?.extend({ until: this.#until + monotonicLeadMs, untilWall: value });
  }

  /** The loss that the other thread has found. */
  get loss(): LossReason | undefined {
    return this.#slot?.loss;
  }

  /** Shares the validity. @param endsAt the end of the lease, on the scale of `clock.now()` */
  attach(slot: LeaseSlot, endsAt: number): void {
    const { until, untilWall } = this;
    this.#slot = slot;
    slot.begin({ until: until + monotonicLeadMs, untilWall, endsAt: endsAt + monotonicLeadMs });
  }

  /** Ends the share in this slot, and keeps the last times. A lease on the same grant may have attached another slot. */
  detach(slot: LeaseSlot): void {
    if (this.#slot === slot) {
      const { until, untilWall } = this;
      this.#until = until;
      this.#untilWall = untilWall;
      this.#slot = undefined;
    }
    slot.end();
  }
}
