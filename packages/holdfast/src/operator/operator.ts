import { engineFacts, publish } from "../diagnostics.ts";
import { LockError } from "../errors.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import {
  checkFencingToken,
  checkInteger,
  checkKey,
  checkOptionNames,
  checkNote,
  invalidCursor,
  invalidValue,
} from "../option-checks.ts";
import type { AuditOptions, AuditPage, AuditQuery, BreakOutcome } from "./audit.ts";
import { listProcesses, resolveProcesses } from "../processes/processes.ts";
import type { ProcessesOptions, ProcessList } from "../processes/process-state.ts";
import {
  breakOwner,
  breakResult,
  resolveBreakOwner,
  type BreakOwnerOptions,
  type BreakingLocks,
  type BreakOwnerResult,
  type BreakResult,
  type ForcedEnd,
  type ResolvedBreakOwner,
} from "./break-owner.ts";

/** Options of `Locks.breakLock`. */
export interface BreakOptions {
  /** The fencing token of the grant. No other grant of the key is broken. */
  fencingToken: bigint;
  /** Why the grant is broken, at most 1 024 bytes. The holder receives it. */
  reason: string;
  /** The operator's name in the audit, at most 512 bytes. @defaultValue the owner of the `Locks` */
  by?: string | undefined;
  /** Called with the result before the call resolves: `auditId` names the record of the break. Not called if the call rejects. */
  onResult?: ((result: BreakResult) => void) | undefined;
}

/** The calls of an operator: ends grants of other holders by force, and reads the audit. */
export class Operator {
  readonly #coordinator: LocalCoordinator;
  readonly #locks: Pick<BreakingLocks, "inspect" | "list">;

  constructor(coordinator: LocalCoordinator, locks: Pick<BreakingLocks, "inspect" | "list">) {
    this.#coordinator = coordinator;
    this.#locks = locks;
  }

  /** See `Locks.breakLock`. @param key a key that the engine can hold */
  breakLock(key: string, options: BreakOptions): Promise<boolean> {
    checkOptionNames(options, ["fencingToken", "reason", "by", "onResult"]);
    const fencingToken = checkFencingToken(options.fencingToken);
    const reason = checkNote("reason", options.reason, 1024);
    const by = options.by === undefined ? undefined : checkNote("by", options.by, 512);
    const { onResult } = options;
    if (onResult !== undefined && typeof onResult !== "function") {
      throw invalidValue("onResult", "a function", onResult);
    }
    return this.#breakLock(key, fencingToken, { reason, by, onResult });
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

  /** See `Locks.audit`. */
  audit(options?: AuditOptions): Promise<AuditPage> {
    return this.#audit(resolveAudit(options));
  }

  async #breakLock(
    key: string,
    fencingToken: bigint,
    { onResult, ...end }: ForcedEnd & Pick<BreakOptions, "onResult">,
  ): Promise<boolean> {
    const outcome = await this.#breakGrant(key, fencingToken, end);
    onResult?.(breakResult(key, fencingToken, outcome));
    return outcome.isBroken;
  }

  /** @param owner the owner of the grant; undefined: the engine is asked, if it writes a record */
  async #breakGrant(
    key: string,
    fencingToken: bigint,
    { reason, by }: ForcedEnd,
    owner?: string,
  ): Promise<BreakOutcome> {
    const { driver } = this.#coordinator;
    this.#coordinator.assertOpen();
    if (this.#coordinator.wasHandedOver(key, fencingToken)) {
      return { isBroken: false };
    }
    const note = driver.audit && {
      by: by ?? this.#coordinator.owner,
      owner: owner ?? (await this.#ownerOf(key, fencingToken)),
    };
    const outcome = await driver.breakGrant(key, fencingToken, reason, note);
    if (outcome.isBroken) {
      publish("broken", () => ({ key, ...engineFacts(this.#coordinator), fencingToken, reason }));
    }
    return outcome;
  }

  async #ownerOf(key: string, fencingToken: bigint): Promise<string | undefined> {
    const state = await this.#locks.inspect(key).catch(() => undefined);
    return state?.holders.find((holder) => holder.fencingToken === fencingToken)?.owner;
  }

  async #breakOwner(resolved: ResolvedBreakOwner): Promise<BreakOwnerResult> {
    this.#coordinator.assertOpen();
    return breakOwner(
      {
        inspect: (key) => this.#locks.inspect(key),
        list: (options) => this.#locks.list(options),
        breakGrant: (...args) => this.#breakGrant(...args),
      },
      resolved,
    );
  }

  async #audit(query: AuditQuery): Promise<AuditPage> {
    const { driver } = this.#coordinator;
    this.#coordinator.assertOpen();
    if (!driver.audit) {
      const { engine } = driver.capabilities;
      const reason = "it cannot write a record in the same step as a break";
      const message = `This engine (${engine}) keeps no audit of breaks, because ${reason}`;
      throw new LockError(message, { code: "unsupported" });
    }
    return driver.audit(query);
  }
}

/** @throws {TypeError | RangeError} */
function resolveAudit(options: AuditOptions = {}): AuditQuery {
  checkOptionNames(options, ["key", "id", "cursor", "limit"]);
  const { key, id, cursor, limit = 100 } = options;
  if (cursor !== undefined && !isId(cursor)) {
    throw invalidCursor(cursor);
  }
  if (id !== undefined && !isId(id)) {
    throw invalidValue("id", "the id of a record, a decimal number as text", id);
  }
  return {
    key: key === undefined ? undefined : checkKey(key),
    id,
    cursor: cursor ?? null,
    limit: checkInteger("limit", limit, 1, 1000),
  };
}

function isId(value: unknown): value is string {
  return typeof value === "string" && /^\d{1,30}$/.test(value);
}
