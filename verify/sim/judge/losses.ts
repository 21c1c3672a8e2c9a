import type { Findings } from "./findings.ts";
import type { TrackedLease } from "./holdings.ts";

/** A timer is late by its rounding at the most. */
const timerErrorMs = 1;
/** Who was asleep, or whose wall clock was set, finds it out by a look at both clocks once in a second. */
const clockCheckMs = 1_050;

/** What is known of the process of a holder. */
export interface ProcessHealth {
  readonly isRunning: boolean;
  readonly hadFault: boolean;
}

/** Whether who holds a lease is told of its loss by the end of its validity. */
export class LossNotices {
  readonly #findings: Findings;
  readonly #healthOf: (client: number) => ProcessHealth;
  /** Leases that are over and whose holder has not been told, since when. */
  readonly #unreported = new Map<TrackedLease, number>();

  constructor(findings: Findings, healthOf: (client: number) => ProcessHealth) {
    this.#findings = findings;
    this.#healthOf = healthOf;
  }

  /** @returns whether it is over and that has been told */
  isReported(lease: TrackedLease): boolean {
    if (lease.lease.remainingMs() > 0) {
      this.#unreported.delete(lease); // also again: the wall clock was set forward, and back before anybody looked
      return false;
    }
    if (lease.lease.signal.aborted) {
      this.#unreported.delete(lease);
      return true;
    }
    const { isRunning, hadFault } = this.#healthOf(lease.client);
    if (!isRunning) {
      this.#unreported.delete(lease); // nobody can be told anything there
      return false;
    }
    const { now } = this.#findings;
    const since = this.#unreported.get(lease) ?? now;
    this.#unreported.set(lease, since);
    if (now - since > (hadFault ? clockCheckMs : timerErrorMs)) {
      this.#findings.add(
        "loss",
        `client ${lease.client} is not told for ${(now - since).toFixed(1)} ms that ${lease.lease.fencingToken} is over`,
      );
      return true;
    }
    return false;
  }
}
