import { engineFacts, publish } from "../diagnostics.ts";
import { LockError } from "../errors.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import type { LockEvent, LockState, NodeState } from "../lock-state.ts";
import type { LocksAdmin } from "../locks.ts";
import {
  checkFencingToken,
  checkInteger,
  checkOptionNames,
  checkNote,
  checkSignal,
  invalidCursor,
  invalidValue,
} from "../option-checks.ts";
import { resolveList, type ListOptions } from "../options.ts";
import type { AuditOptions, AuditPage, AuditQuery, BreakOutcome } from "./audit.ts";
import { listProcesses, resolveProcesses } from "../processes/processes.ts";
import type { ProcessesOptions, ProcessList } from "../processes/process-state.ts";
import {
  breakOwner,
  breakResult,
  resolveBreakOwner,
  type BreakOwnerOptions,
  type BreakOwnerResult,
  type BreakResult,
  type ForcedEnd,
  type ResolvedBreakOwner,
} from "./break-owner.ts";

/** Options of `LocksAdmin.breakLock`. */
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

/** The calls of an operator. */
export class OperatorCalls implements LocksAdmin {
  readonly #coordinator: LocalCoordinator;
  readonly #inspect: (key: string) => Promise<LockState>;

  constructor(coordinator: LocalCoordinator, inspect: (key: string) => Promise<LockState>) {
    this.#coordinator = coordinator;
    this.#inspect = inspect;
  }

  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }> {
    const query = resolveList(options);
    return this.#coordinator.whileOpen(async () => {
      const { locks, cursor } = await this.#coordinator.driver.list(query);
      return { locks: locks.map((state) => this.#coordinator.withLocalState(state)), cursor };
    });
  }

  watch(
    target: string | { prefix: string },
    options: { signal?: AbortSignal | undefined } = {},
  ): AsyncIterable<LockEvent> {
    if (typeof target === "string") {
      this.#coordinator.checkKey(target);
    } else {
      if (typeof target?.prefix !== "string") {
        throw invalidValue("target", "a key, or an object with a `prefix`", target);
      }
      checkOptionNames(target, ["prefix"]);
    }
    checkOptionNames(options, ["signal"]);
    const { signal } = options;
    const ends = [
      this.#coordinator.closing,
      ...(signal === undefined ? [] : [checkSignal("signal", signal)]),
    ];
    this.#coordinator.assertOpen();
    return this.#coordinator.withLocalStates(this.#coordinator.driver.watch(target, AbortSignal.any(ends)));
  }

  nodes(): Promise<NodeState[]> {
    return this.#coordinator.whileOpen(() => this.#coordinator.driver.nodes());
  }

  #about<T>(key: string | undefined, operation: () => Promise<T>): Promise<T> {
    const coordinator = this.#coordinator;
    return key === undefined ? coordinator.whileOpen(operation) : coordinator.forKey(key, operation);
  }

  breakLock(key: string, options: BreakOptions): Promise<boolean> {
    checkOptionNames(options, ["fencingToken", "reason", "by", "onResult"]);
    const fencingToken = checkFencingToken(options.fencingToken);
    const reason = checkNote("reason", options.reason, 1024);
    const by = options.by === undefined ? undefined : checkNote("by", options.by, 512);
    const { onResult } = options;
    if (onResult !== undefined && typeof onResult !== "function") {
      throw invalidValue("onResult", "a function", onResult);
    }
    return this.#coordinator.forKey(key, () => this.#breakLock(key, fencingToken, { reason, by, onResult }));
  }

  breakOwner(owner: string, options: BreakOwnerOptions): Promise<BreakOwnerResult> {
    const resolved = resolveBreakOwner(owner, options);
    return this.#coordinator.whileOpen(async () => {
      resolved.grants?.forEach(({ key }) => this.#coordinator.checkKey(key));
      return this.#breakOwner(resolved);
    });
  }

  processes(options?: ProcessesOptions): Promise<ProcessList> {
    const query = resolveProcesses(options);
    return this.#about(query.key, () => listProcesses(this.#coordinator, query));
  }

  audit(options?: AuditOptions): Promise<AuditPage> {
    const query = resolveAudit(options);
    return this.#about(query.key, () => this.#audit(query));
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
    const state = await this.#inspect(key).catch(() => undefined);
    return state?.holders.find((holder) => holder.fencingToken === fencingToken)?.owner;
  }

  #breakOwner(resolved: ResolvedBreakOwner): Promise<BreakOwnerResult> {
    return breakOwner(
      {
        inspect: (key) => this.#inspect(key),
        list: (options) => this.list(options),
        breakGrant: (...args) => this.#breakGrant(...args),
      },
      resolved,
    );
  }

  async #audit(query: AuditQuery): Promise<AuditPage> {
    const { driver } = this.#coordinator;
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
    key,
    id,
    cursor: cursor ?? null,
    limit: checkInteger("limit", limit, 1, 1000),
  };
}

function isId(value: unknown): value is string {
  return typeof value === "string" && /^\d{1,30}$/.test(value);
}
