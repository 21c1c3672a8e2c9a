import type { Findings } from "./findings.ts";
import type { Held } from "./holdings.ts";

/** A timer is late by its rounding at the most. */
const timerMs = 1;
/** Who was asleep, or whose wall clock was set, finds it out by a look at both clocks once in a second. */
const pulseMs = 1_050;

/** What is known of the process of a holder. */
export interface Standing {
  readonly isRunning: boolean;
  readonly wasDisturbed: boolean;
}

/** Whether who holds a lease is told of its loss by the end of its validity. */
export class Losses {
  readonly #findings: Findings;
  readonly #standingOf: (client: number) => Standing;
  /** Leases that are over and whose holder has not been told, since when. */
  readonly #untold = new Map<Held, number>();

  constructor(findings: Findings, standingOf: (client: number) => Standing) {
    this.#findings = findings;
    this.#standingOf = standingOf;
  }

  /** @returns whether it is over and that has been told */
  isTold(held: Held): boolean {
    if (held.lease.remainingMs() > 0) {
      this.#untold.delete(held); // also again: the wall clock was set forward, and back before anybody looked
      return false;
    }
    if (held.lease.signal.aborted) {
      this.#untold.delete(held);
      return true;
    }
    const { isRunning, wasDisturbed } = this.#standingOf(held.client);
    if (!isRunning) {
      this.#untold.delete(held); // nobody can be told anything there
      return false;
    }
    const { now } = this.#findings;
    const since = this.#untold.get(held) ?? now;
    this.#untold.set(held, since);
    if (now - since > (wasDisturbed ? pulseMs : timerMs)) {
      this.#findings.add(
        "loss",
        `client ${held.client} is not told for ${(now - since).toFixed(1)} ms that ${held.lease.fencingToken} is over`,
      );
      return true;
    }
    return false;
  }
}
