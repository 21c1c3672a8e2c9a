import type { Findings } from "./findings.ts";
import type { TrackedLease, WatchedLease } from "./leases.ts";

/** The rounding of a timer is its largest delay. */
const timerErrorMs = 1;
/** A process compares its two clocks once in a second, and so detects that its machine slept or that its wall clock was set. */
const clockCheckMs = 1_050;

/** Whether the holder was notified. A read of `signal.aborted` looks at the clocks, and would abort the signal. */
export function wasNotified({ signal }: Pick<WatchedLease, "signal">): boolean {
  return signal instanceof AbortSignal
    ? (Reflect.get(AbortSignal.prototype, "aborted", signal) as boolean)
    : (signal as { readonly aborted: boolean }).aborted;
}

/** The state of a holder's process. */
export interface ProcessHealth {
  readonly isRunning: boolean;
  readonly hadFault: boolean;
}

/** Checks that every holder is notified of the loss of its lease by the end of the validity. */
export class LossNotices {
  readonly #findings: Findings;
  readonly #healthOf: (client: number) => ProcessHealth;
  /** Expired leases whose holder has not been notified, and since when. */
  readonly #unreported = new Map<TrackedLease, number>();

  constructor(findings: Findings, healthOf: (client: number) => ProcessHealth) {
    this.#findings = findings;
    this.#healthOf = healthOf;
  }

  /** @returns whether the lease is expired and the loss has been reported, to its holder or as a finding */
  isReported(lease: TrackedLease): boolean {
    if (lease.lease.remainingMs() > 0) {
      this.#unreported.delete(lease); // valid again: the wall clock was set forward, and then back before the process compared its clocks
      return false;
    }
    if (wasNotified(lease.lease)) {
      this.#unreported.delete(lease);
      return true;
    }
    const { isRunning, hadFault } = this.#healthOf(lease.client);
    if (!isRunning) {
      this.#unreported.delete(lease); // a stopped process cannot receive the loss
      return false;
    }
    const { now } = this.#findings;
    const since = this.#unreported.get(lease) ?? now;
    this.#unreported.set(lease, since);
    if (now - since > (hadFault ? clockCheckMs : timerErrorMs)) {
      this.#findings.add(
        "loss",
        `client ${lease.client} has not been notified of the loss of ${lease.lease.fencingToken} for ${(now - since).toFixed(1)} ms`,
      );
      return true;
    }
    return false;
  }
}

/** When the last effect of a fault on each client ends. */
export class ClientFaults {
  readonly #ends = new Map<number, number>();

  /** A fault begins now. @param end when the last effect of the fault ends */
  begin(client: number, end: number): void {
    this.#ends.set(client, Math.max(this.#ends.get(client) ?? -Infinity, end));
  }

  /** Whether no fault has had an effect on the client since then. */
  isQuietSince(client: number, since: number): boolean {
    return (this.#ends.get(client) ?? -Infinity) < since;
  }
}
