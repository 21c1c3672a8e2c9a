/** What is checked. */
export type CheckName =
  /** Nobody has a valid lease while another has, but those who share the key; and of them never more than there is room for. */
  | "exclusion"
  /** The same on the server, by what it keeps: nobody is let in where there is no room, whoever knows of it. */
  | "capacity"
  /**
   * Fencing numbers are unique, and rise in the order in which grants are complete. Of those who share a key: who asked when another
   * had been told has a larger number, but a lease of a semaphore that was handed over: that has the next number of its grant. On a
   * quorum readers who asked at the same time may have the same.
   */
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
  /** A lease of several keys has each of them. */
  | "multi-lock"
  /** Who enters a reentrant lock again is in the same hold, and of the branches of one frame one at a time is. */
  | "reentry"
  /** An attempt counts a latch down once, whatever is sent again. */
  | "count"
  /**
   * A latch opens with its last count, and stays so until its TTL is over: nobody is let go before; who has met one that is over touches
   * no other.
   */
  | "latch"
  /** Nothing stays behind: on servers, of timers, of listeners. */
  | "residue"
  /** No promise rejects unheard. */
  | "rejection"
  /** An acquisition costs a bounded number of messages. */
  | "messages";

export interface Finding {
  readonly check: CheckName;
  /** True time, ms. */
  readonly at: number;
  readonly text: string;
}

/** What went wrong in one world. */
export class Findings {
  readonly list: Finding[] = [];
  /** What was not judged, by the reason. */
  readonly skipped: Set<string> = new Set();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get now(): number {
    return this.#now();
  }

  add(check: CheckName, text: string): void {
    this.list.push({ check, at: this.now, text });
  }

  /** Something would be wrong if there were not this reason. */
  skip(reason: string): undefined {
    this.skipped.add(reason);
  }
}

export function describeFinding({ check, at, text }: Finding): string {
  return `${check}, at ${at.toFixed(3)} ms: ${text}`;
}
