import type { Columns } from "../explorer/model.ts";
import { attemptBytes, headBytes, lead, maxOffset, nodeBytes, now, startTime } from "./fields.ts";
import type { ClocksSettings } from "./settings.ts";

/** A state, with names for its bytes. */
export class StateLayout {
  readonly bytes: Uint8Array;
  readonly nodes: number;
  readonly attempts: number;
  readonly majority: number;
  readonly columns: Columns;

  constructor({ ahead, attempts }: Pick<ClocksSettings, "ahead" | "attempts">) {
    this.nodes = ahead.length;
    this.attempts = attempts;
    this.majority = Math.floor(this.nodes / 2) + 1;
    this.columns = {
      from: headBytes + attempts * attemptBytes,
      width: nodeBytes + attempts,
      count: this.nodes,
    };
    this.bytes = new Uint8Array(this.columns.from + this.columns.width * this.nodes);
  }

  votes(a: number): number {
    let votes = 0;
    for (let n = 0; n < this.nodes; n += 1) {
      const from = this.get(n, nodeBytes + a);
      votes += from > 0 && from - 1 <= this.read(now) ? 1 : 0;
    }
    return votes;
  }

  forgetVotes(a: number): void {
    for (let n = 0; n < this.nodes; n += 1) {
      this.set(n, nodeBytes + a, 0);
    }
  }

  /** Whether the clock of the node differs by at most D from the clocks of a majority, the node included. */
  isNearMajority(n: number): boolean {
    let near = 0;
    for (let other = 0; other < this.nodes; other += 1) {
      near += Math.abs(this.get(other, lead) - this.get(n, lead)) <= 1 ? 1 : 0;
    }
    return near >= this.majority;
  }

  clock(n: number): number {
    return startTime + this.read(now) + this.get(n, lead) - maxOffset;
  }

  read(field: number): number {
    return this.bytes[field] as number;
  }

  get(n: number, field: number): number {
    return this.read(this.columns.from + n * this.columns.width + field);
  }

  set(n: number, field: number, value: number): void {
    this.bytes[this.columns.from + n * this.columns.width + field] = value;
  }

  phase(a: number): number {
    return this.read(headBytes + a * attemptBytes);
  }

  setPhase(a: number, phase: number): void {
    this.bytes[headBytes + a * attemptBytes] = phase;
  }
}
