import { engineFacts, publish } from "../diagnostics.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { checkFencingToken, checkKey, checkOptionNames, checkText } from "../option-checks.ts";
import { listProcesses, resolveProcesses } from "../processes/processes.ts";
import type { ProcessesOptions, ProcessList } from "../processes/process-state.ts";
import {
  breakOwner,
  resolveBreakOwner,
  type BreakOwnerOptions,
  type BreakingLocks,
  type BreakOwnerResult,
  type ResolvedBreakOwner,
} from "./break-owner.ts";

/** Options of `Locks.breakLock`. */
export interface BreakOptions {
  /** The fencing token of the grant. No other grant of the key is broken. */
  fencingToken: bigint;
  /** Why the grant is broken, at most 1 024 bytes. The holder receives it. */
  reason: string;
}

/** Ends grants of other holders by force. */
export class Operator {
  readonly #coordinator: LocalCoordinator;
  readonly #locks: BreakingLocks;

  constructor(coordinator: LocalCoordinator, locks: BreakingLocks) {
    this.#coordinator = coordinator;
    this.#locks = locks;
  }

  /** See `Locks.breakLock`. @param key a key that the engine can hold */
  breakLock(key: string, options: BreakOptions): Promise<boolean> {
    checkOptionNames(options, ["fencingToken", "reason"]);
    const fencingToken = checkFencingToken(options.fencingToken);
    const reason = checkText("reason", options.reason, 1024);
    return this.#breakGrant(key, fencingToken, reason);
  }

  /** See `Locks.breakOwner`. */
  breakOwner(owner: string, options: BreakOwnerOptions): Promise<BreakOwnerResult> {
    const { driver } = this.#coordinator;
    const resolved = resolveBreakOwner(owner, options, (key) => driver.checkKey(checkKey(key)));
    return this.#breakOwner(resolved);
  }

  /** See `Locks.processes`. */
  processes(options: ProcessesOptions | undefined): Promise<ProcessList> {
    const query = resolveProcesses(options);
    if (query.key !== undefined) {
      this.#coordinator.driver.checkKey(query.key);
    }
    return listProcesses(this.#coordinator, query);
  }

  async #breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    this.#coordinator.assertOpen();
    const isStale = this.#coordinator.wasHandedOver(key, fencingToken);
    const isBroken = !isStale && (await this.#coordinator.driver.breakGrant(key, fencingToken, reason));
    if (isBroken) {
      publish("broken", () => ({ key, ...engineFacts(this.#coordinator), fencingToken, reason }));
    }
    return isBroken;
  }

  async #breakOwner(resolved: ResolvedBreakOwner): Promise<BreakOwnerResult> {
    this.#coordinator.assertOpen();
    return breakOwner(this.#locks, resolved);
  }
}
