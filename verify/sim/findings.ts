/** What is checked. */
export type Check =
  /** Nobody has a valid lease while another has. */
  | "exclusion"
  /** Fencing numbers are unique, and rise in the order in which grants are complete. */
  | "fencing"
  /** Who waits is served in turn. */
  | "order"
  /** Who waits for a free lock gets it, and nobody waits longer than he wants to. */
  | "progress"
  /** A lost lease is told to its holder by the end of its validity. */
  | "loss"
  /** `release` and `withLock` answer what is true. */
  | "release"
  /** Nobody is told of trouble where there is none, nor of an error that is none of ours. */
  | "refusal"
  /** Nothing stays behind: on servers, of timers, of listeners. */
  | "leftovers"
  /** No promise rejects unheard. */
  | "rejection"
  /** An acquisition costs a bounded number of messages. */
  | "messages";

export interface Finding {
  readonly check: Check;
  /** True time, ms. */
  readonly at: number;
  readonly text: string;
}

/** What went wrong in one world. */
export class Findings {
  readonly all: Finding[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get now(): number {
    return this.#now();
  }

  add(check: Check, text: string): void {
    this.all.push({ check, at: this.now, text });
  }
}

export function toldOf({ check, at, text }: Finding): string {
  return `${check}, at ${at.toFixed(3)} ms: ${text}`;
}
