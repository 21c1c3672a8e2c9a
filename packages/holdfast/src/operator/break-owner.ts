import { isLockError } from "../errors.ts";
import type { LockState } from "../lock-state.ts";
import {
  checkFencingToken,
  checkInteger,
  checkObject,
  checkOptionNames,
  checkSignal,
  checkNote,
  checkText,
  invalidValue,
} from "../option-checks.ts";
import type { ListOptions } from "../options.ts";
import { withJson } from "../runtime/plain-values.ts";
import type { BreakOutcome } from "./audit.ts";

/** Options of `LocksAdmin.breakOwner`. */
export interface BreakOwnerOptions {
  /** Why the grants are broken, at most 1 024 bytes. Every holder receives it. */
  reason: string;
  /** The operator's name in the audit, at most 512 bytes. @defaultValue the owner of the `Locks` */
  by?: string | undefined;
  /** Searches only keys with this prefix. @defaultValue "" */
  prefix?: string | undefined;
  /**
   * Breaks only these grants, without a search. A grant is skipped with the result `false` if the owner no longer holds it.
   * @defaultValue every grant of the owner that one search finds
   */
  grants?: readonly { readonly key: string; readonly fencingToken: bigint }[] | undefined;
  /**
   * At most this many grants are broken, 1 to 100 000. `isComplete` is false if the owner holds more.
   * @defaultValue 10 000
   */
  limit?: number | undefined;
  /** Aborts the work between two steps: the call rejects with the signal's reason. Broken grants stay broken. */
  signal?: AbortSignal | undefined;
  /** Called after each grant, also before the call rejects. */
  onResult?: ((result: BreakResult) => void) | undefined;
}

/** The result for one grant. `JSON.stringify` writes the fencing token as a decimal string. */
export interface BreakResult {
  readonly key: string;
  readonly fencingToken: bigint;
  /** True: the grant has ended by this call. False: it had ended before. `"unknown"`: the engine did not reply. */
  readonly broken: boolean | "unknown";
  /** The id of the record in the audit. Absent: nothing was broken, or the engine keeps no audit. */
  readonly auditId?: string;
  /** The failure of the engine, if there was one. */
  readonly error?: unknown;
}

/** The result of `LocksAdmin.breakOwner`. */
export interface BreakOwnerResult {
  /** One entry for each grant, in the order of the search. */
  readonly results: readonly BreakResult[];
  /** Whether the search reached the last key. False: `limit` grants were found before. */
  readonly isComplete: boolean;
}

export interface ResolvedBreakOwner extends BreakOwnerOptions {
  readonly owner: string;
  readonly prefix: string;
  readonly limit: number;
}

/** The calls of `Locks` that the search and the breaks need. */
export interface BreakingLocks {
  inspect(key: string): Promise<LockState>;
  list(options: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }>;
  /** @param owner the owner that was seen, for the audit */
  breakGrant(key: string, fencingToken: bigint, options: ForcedEnd, owner: string): Promise<BreakOutcome>;
}

/** Why a grant is broken, and by which operator. */
export type ForcedEnd = Pick<BreakOwnerOptions, "reason" | "by">;

type SeenGrant = Pick<BreakResult, "key" | "fencingToken">;

const optionNames = ["reason", "by", "prefix", "grants", "limit", "signal", "onResult"];
/** How many requests are under way at once. */
const concurrency = 16;
const maxLimit = 100_000;

/** @throws {TypeError | RangeError} */
export function resolveBreakOwner(owner: string, options: BreakOwnerOptions): ResolvedBreakOwner {
  checkOptionNames(options, optionNames);
  const { reason, by, prefix = "", grants, limit = 10_000, signal, onResult } = options;
  if (grants !== undefined && !Array.isArray(grants)) {
    throw invalidValue("grants", "an array", grants);
  }
  for (const grant of grants ?? []) {
    checkObject("grants", grant);
    checkFencingToken(grant.fencingToken);
  }
  if (onResult !== undefined && typeof onResult !== "function") {
    throw invalidValue("onResult", "a function", onResult);
  }
  return {
    owner: checkText("owner", owner, 512),
    reason: checkNote("reason", reason, 1024),
    by: by === undefined ? undefined : checkNote("by", by, 512),
    prefix: prefix === "" ? "" : checkText("prefix", prefix, 512),
    grants,
    limit: checkInteger("limit", limit, 1, maxLimit),
    signal: signal === undefined ? undefined : checkSignal("signal", signal),
    onResult,
  };
}

/** Breaks grants of one owner, each by the fencing token that was seen. A later grant of the owner stays in force. */
export async function breakOwner(
  locks: BreakingLocks,
  options: ResolvedBreakOwner,
): Promise<BreakOwnerResult> {
  const { limit, signal, onResult } = options;
  const results: BreakResult[] = [];
  for await (const found of pagesOf(locks, options)) {
    const grants = found.slice(0, limit - results.length);
    for (let at = 0; at < grants.length; at += concurrency) {
      signal?.throwIfAborted();
      const batch = grants.slice(at, at + concurrency);
      const broken = await Promise.all(batch.map((grant) => breakGrant(locks, grant, options)));
      results.push(...broken);
      broken.forEach((result) => onResult?.(result));
    }
    if (grants.length < found.length) {
      return { results, isComplete: false };
    }
  }
  return { results, isComplete: true };
}

/** The grants of the owner, page by page. A search may return a key twice while it changes, but each grant is yielded once. */
async function* pagesOf(locks: BreakingLocks, options: ResolvedBreakOwner): AsyncGenerator<SeenGrant[]> {
  const { owner, prefix, grants, signal } = options;
  const seen = new Set<string>();
  const isFirst = ({ key, fencingToken }: SeenGrant): boolean =>
    seen.size < seen.add(`${fencingToken} ${key}`).size;
  if (grants) {
    yield grants.filter(isFirst);
    return;
  }
  let cursor: string | undefined;
  do {
    const page = await locks.list({ prefix, cursor, limit: 1_000, signal });
    yield page.locks.flatMap((state) => grantsIn(state, owner)).filter(isFirst);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
}

/** The grants of the owner on one key. A holder that is not a Holdfast client may have no fencing token, and cannot be broken. */
function grantsIn({ key, holders }: LockState, owner: string): SeenGrant[] {
  return holders.flatMap(({ fencingToken, ...holder }) =>
    holder.owner === owner && fencingToken !== undefined ? [{ key, fencingToken }] : [],
  );
}

async function breakGrant(
  locks: BreakingLocks,
  { key, fencingToken }: SeenGrant,
  options: ResolvedBreakOwner,
): Promise<BreakResult> {
  const { owner, grants } = options;
  try {
    const isOwned =
      grants === undefined ||
      grantsIn(await locks.inspect(key), owner).some((grant) => grant.fencingToken === fencingToken);
    const outcome = isOwned && (await locks.breakGrant(key, fencingToken, options, owner));
    return breakResult(key, fencingToken, outcome || { isBroken: false });
  } catch (error) {
    if (isLockError(error, "closed")) {
      throw error;
    }
    const { outcome } = error as { outcome?: "none" | "unknown" };
    const broken = outcome === "none" ? false : ("unknown" as const);
    return withJson({ key, fencingToken, broken, error });
  }
}

export function breakResult(
  key: string,
  fencingToken: bigint,
  { isBroken, auditId }: BreakOutcome,
): BreakResult {
  return withJson({ key, fencingToken, broken: isBroken, ...(auditId !== undefined && { auditId }) });
}
