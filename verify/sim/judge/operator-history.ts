import type { Findings } from "./findings.ts";
import type { KeyHistory } from "./key-history.ts";
import type { LimitChange } from "./limits.ts";
import { keyLeasesOf, type WatchedLeases } from "./multi-lock.ts";
import type { Schedule } from "../plan/schedule.ts";

/** What operators do: they break grants, and set the limits of semaphores. */
export class OperatorHistory {
  readonly #findings: Findings;
  readonly #schedule: Schedule;
  readonly #keyHistory: (key: string) => KeyHistory;

  constructor(findings: Findings, schedule: Schedule, keyHistory: (key: string) => KeyHistory) {
    this.#findings = findings;
    this.#schedule = schedule;
    this.#keyHistory = keyHistory;
  }

  /** An operator ends the grant with that number, which is that client's by what he was told. */
  breaks(key: string, fencingToken: bigint, client: number): void {
    const { holdings, order } = this.#keyHistory(key);
    holdings.breaks(fencingToken, client, this.#isShared);
    const isHeld = Array.from(holdings.leases).some((lease) => lease.client === client);
    order.grantBroken(client, isHeld || holdings.wasGranted(fencingToken));
  }

  /** @returns whether an operator has ended the lease, also after its release has begun */
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

  /** An operator asks for another limit; clients name that one from now on. */
  limitRequested(key: string, limit: number): LimitChange {
    return this.#keyHistory(key).limits.requested(limit);
  }

  /** An engine is told to set it: in memory that is at once. One server is looked at instead: see `ServerRoom`. */
  limitSet(key: string, limit: number): void {
    if (this.#schedule.engine === "memory") {
      this.limitApplied(key, limit);
    }
  }

  /** A semaphore has this limit now. */
  limitApplied(key: string, limit: number): void {
    const { limits, order } = this.#keyHistory(key);
    const wasAsked = limit === limits.now || limits.applied(this.#findings.now, limit);
    if (!wasAsked) {
      this.#findings.add("capacity", `${key} has the limit ${limit}, which nobody asked for`);
    }
    order.limitLowered(limit);
  }

  get #isShared(): boolean {
    const { kind } = this.#schedule;
    return kind === "read-write" || kind === "semaphore";
  }
}
