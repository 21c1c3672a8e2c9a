import type { Seen } from "./latch-snapshot.ts";

/** One latch, from its first use to its end. */
export class Life {
  readonly id: string;
  readonly total: number;
  readonly ends: number;
  /** Attempts that have counted, as far as that is known. */
  readonly proven: Set<string> = new Set();
  left: number;
  openAt: number = Infinity;
  goneAt: number = Infinity;

  constructor({ id, total, left, ends }: Seen, now: number) {
    this.id = id;
    this.total = total;
    this.ends = ends;
    this.left = left;
    this.becomes(left, now);
  }

  get counted(): number {
    return this.total - this.left;
  }

  /** When there was nothing more to wait for. */
  get endedAt(): number {
    return Math.min(this.openAt, this.goneAt);
  }

  becomes(left: number, now: number): void {
    this.left = left;
    if (left === 0) {
      this.openAt = Math.min(this.openAt, now);
    }
  }
}
