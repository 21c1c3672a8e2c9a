import type { Tally } from "./worker.ts";

export interface Job {
  readonly ordersFile: string;
  readonly stockFile: string;
  readonly workers: number;
  readonly signal: AbortSignal;
  /** Called from time to time with the number of completed orders. */
  readonly onProgress: (done: number) => void;
}

export interface JobResult {
  readonly tallies: readonly Tally[];
  readonly handovers: number;
  readonly seconds: number;
}
