import type { LossReason } from "../errors.ts";

/** The losses that the engine may report to an extension. */
const reasons: readonly LossReason[] = ["expired", "stolen", "broken", "released"];

const bitsOfTime = 42n;
const timeMask = (1n << bitsOfTime) - 1n;
/** Smaller values are no times, but states. */
const firstTime = 100;
const ended = 0;

/** The fields of a slot. */
const until = 0;
const untilWall = 1;
const endsAt = 2;
const fieldCount = 3;

/** How many slots one block of shared memory has. */
export const slotsOfBlock = 1024;
export const blockBytes: number = slotsOfBlock * fieldCount * BigInt64Array.BYTES_PER_ELEMENT;

/** The times of a lease. `until` and `endsAt` are monotonic and the same in all threads of the process. All are whole ms. */
export interface SlotTimes {
  readonly until: number;
  readonly untilWall: number;
  readonly endsAt: number;
}

/**
 * The times of one lease in memory that two threads share. Each field has the number of the lease beside the time. So a thread with an
 * old view of a slot neither reads nor changes the times of the next lease there.
 */
export class LeaseSlot {
  readonly #memory: BigInt64Array;
  readonly #first: number;
  readonly #lease: bigint;

  /** @param lease the number of the lease in this slot, from 1 to 2 097 151 */
  constructor(memory: BigInt64Array, index: number, lease: number) {
    this.#memory = memory;
    this.#first = index * fieldCount;
    this.#lease = BigInt(lease) << bitsOfTime;
  }

  /** Gives the slot to this lease. Only the thread of the leases calls it. */
  begin(times: SlotTimes): void {
    this.#store(until, ended);
    this.#store(untilWall, times.untilWall);
    this.#store(endsAt, times.endsAt);
    this.#store(until, times.until);
  }

  /** Undefined: the lease has ended, is lost, or another lease has the slot. */
  get times(): SlotTimes | undefined {
    const [end, wall, last] = [this.#load(until), this.#load(untilWall), this.#load(endsAt)];
    return end === undefined || wall === undefined || last === undefined || end < firstTime
      ? undefined
      : { until: end, untilWall: wall, endsAt: last };
  }

  /** The reported loss of the lease. */
  get loss(): LossReason | undefined {
    const value = this.#load(until) ?? ended;
    return value > ended && value < firstTime ? reasons[value - 1] : undefined;
  }

  /** Replaces the end of the validity. No effect after the end of the lease. */
  extend(times: Pick<SlotTimes, "until" | "untilWall">): void {
    if (this.#replace(until, times.until)) {
      this.#replace(untilWall, times.untilWall);
    }
  }

  endAt(time: number): void {
    this.#replace(endsAt, time);
  }

  lose(reason: LossReason): void {
    this.#replace(until, Math.max(0, reasons.indexOf(reason)) + 1);
  }

  end(): void {
    this.#replace(until, ended);
  }

  #store(field: number, time: number): void {
    Atomics.store(this.#memory, this.#first + field, this.#lease | toBits(time));
  }

  #load(field: number): number | undefined {
    const value = Atomics.load(this.#memory, this.#first + field);
    return (value & ~timeMask) === this.#lease ? Number(value & timeMask) : undefined;
  }

  /** Writes a field of this lease, unless the lease has ended, is lost, or has no longer the slot. */
  #replace(field: number, time: number): boolean {
    const at = this.#first + field;
    for (;;) {
      const present = Atomics.load(this.#memory, at);
      const isEnded = field === until && Number(present & timeMask) < firstTime;
      if ((present & ~timeMask) !== this.#lease || isEnded) {
        return false;
      }
      if (Atomics.compareExchange(this.#memory, at, present, this.#lease | toBits(time)) === present) {
        return true;
      }
    }
  }
}

/** Times are rounded down, so that a validity never becomes longer. */
function toBits(time: number): bigint {
  return BigInt(Math.min(Math.max(0, Math.floor(time)), Number(timeMask)));
}
