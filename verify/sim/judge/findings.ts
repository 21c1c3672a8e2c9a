/** The checks of the simulation. */
export type CheckName =
  /** Valid leases exclude each other. Holders that share a key never use more than its capacity. */
  | "exclusion"
  /** The data of the server never admits more than the capacity, whether or not a caller knows of the grant. */
  | "capacity"
  /**
   * Fencing numbers are unique, and rise in the order in which grants are complete. If holders share a key, a request has a larger
   * number than each number reported before the request. A handed-over lease of a semaphore has the next number of its grant. On a
   * quorum, readers that sent their requests at the same time may have the same number.
   */
  | "fencing"
  /** Waiters are granted the lock in the order of their arrival. */
  | "order"
  /** A free lock is granted to a waiter, and no caller waits beyond its own wait time. */
  | "progress"
  /** The holder of a lost lease is notified by the end of the lease's validity. */
  | "loss"
  /** `release` and `withLock` return the truth. */
  | "release"
  /** Without a fault no call fails, and every error is an error of the library. */
  | "refusal"
  /** A lease of several keys holds each key. */
  | "multi-lock"
  /** A nested entry of a reentrant lock shares the outer hold, and the branches of one frame enter one at a time. */
  | "reentry"
  /** An attempt counts a latch down once, even if its request is repeated. */
  | "count"
  /**
   * A latch opens with its last count, and stays open until its TTL has passed. No waiter returns earlier. A caller that has used an
   * expired latch changes no other latch.
   */
  | "latch"
  /** No data stays on servers, and no timer or listener stays in a process. */
  | "residue"
  /** No promise rejects without a handler. */
  | "rejection"
  /** An acquisition costs a bounded number of messages. */
  | "messages";

export interface Finding {
  readonly check: CheckName;
  /** True time, ms. */
  readonly at: number;
  readonly text: string;
}

/** The failed checks of one world. */
export class Findings {
  readonly list: Finding[] = [];
  /** The reasons for which a check was not applied. */
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

  /** Records that a check would have failed, except for this reason. */
  skip(reason: string): undefined {
    this.skipped.add(reason);
  }
}

export function describeFinding({ check, at, text }: Finding): string {
  return `${check}, at ${at.toFixed(3)} ms: ${text}`;
}
