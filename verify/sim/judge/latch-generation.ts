import type { LatchSnapshot } from "./latch-snapshot.ts";

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
