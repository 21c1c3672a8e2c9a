import type { Findings } from "./findings.ts";
import type { KeyHistory } from "./key-history.ts";
import type { LimitChange } from "./limits.ts";
import { keyLeasesOf, type WatchedLeases } from "./leases.ts";
import type { Schedule } from "../plan/schedule.ts";

/** Records what operators do: they break grants, and set the limits of semaphores. */
export class OperatorHistory {
  readonly #findings: Findings;
  readonly #schedule: Schedule;
  readonly #keyHistory: (key: string) => KeyHistory;

  constructor(findings: Findings, schedule: Schedule, keyHistory: (key: string) => KeyHistory) {
    this.#findings = findings;
    this.#schedule = schedule;
    this.#keyHistory = keyHistory;
  }

  /**
   * An operator breaks the grant with that number.
   * @param client the owner by the reply to the operator. Clients of one process share a driver, so this may be another client of the
   * holder's process
   */
  breaks(key: string, fencingToken: bigint, client: number): void {
    const { holdings, order } = this.#keyHistory(key);
    holdings.breaks(fencingToken, client, this.#isShared);
    const leases = Array.from(holdings.leases);
    const isHeld = leases.some((lease) => lease.client === client);
    order.grantBroken(client, isHeld || holdings.wasGranted(fencingToken));
    for (const holder of leases.filter((lease) => lease.grantRun.isBroken)) {
      order.grantBroken(holder.client, true);
    }
  }

  /** @returns a test whether an operator has broken the lease, also after the release of the lease has begun */
  breakOf(lease: WatchedLeases): () => boolean {
    const isShared = this.#isShared;
    const breaks = keyLeasesOf(lease).map((keyLease) => {
      const { holdings } = this.#keyHistory(keyLease.key);
      const runs = [...holdings.leases]
        .filter((one) => one.lease === keyLease)
        .map(({ grantRun }) => grantRun);
      return () => runs.some((run) => run.isBroken) || holdings.isBroken(keyLease.fencingToken, isShared);
    });
    return () => breaks.some((isBroken) => isBroken());
  }

  /** An operator requests another limit. Clients name that limit from now on. */
  limitRequested(key: string, limit: number): LimitChange {
    return this.#keyHistory(key).limits.requested(limit);
  }

  /** The request to set the limit is sent. Memory applies the limit at once. On one server, `ServerWatch` reads when the limit is applied. */
  limitSet(key: string, limit: number): void {
    if (this.#schedule.engine === "memory") {
      this.limitApplied(key, limit);
    }
  }

  /** The semaphore has this limit now. */
  limitApplied(key: string, limit: number): void {
    const { limits, order } = this.#keyHistory(key);
    const isKnown = limit === limits.now || limits.applied(this.#findings.now, limit);
    if (!isKnown) {
      this.#findings.add("capacity", `${key} has the limit ${limit}, which no operator requested`);
    }
    order.limitLowered(limit);
  }

  get #isShared(): boolean {
    const { kind } = this.#schedule;
    return kind === "read-write" || kind === "semaphore";
  }
}
