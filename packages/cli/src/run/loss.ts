import type { LeaseLostError, Lease, Locks } from "holdfast";

import type { Engine } from "../engine.ts";
import { sanitizeForTerminal } from "../inspect/table.ts";
import { within } from "./within.ts";

/** The limit for the question about the break, ms. The command has got its signal before. */
const auditLimitMs = 500;
/** How many of the newest breaks of the key are searched. */
const auditDepth = 20;

/** The reason of a loss in words. For a break also its operator and reason, if the engine knows them. */
export async function describeLoss(
  locks: Locks,
  lease: Lease,
  loss: LeaseLostError | undefined,
): Promise<string> {
  if (loss?.reason === "broken") {
    const why = loss.cause instanceof Error ? ` (${loss.cause.message})` : "";
    return (
      (await describeBreak(locks, loss.key ?? lease.key, lease.fencingTokens)) ??
      sanitizeForTerminal(`broken${why}`)
    );
  }
  if (loss === undefined) {
    return "a renewal came too late";
  }
  const { reason, cause } = loss;
  if (reason === "engine-unreachable" && cause instanceof Error) {
    return sanitizeForTerminal(`${reason} (${cause.message})`);
  }
  return reason === "suspended" ? `${reason}, because this process or its machine was stopped` : reason;
}

/** The break of a grant in words; undefined if the engine has no record of the break. */
export async function describeBreak(
  locks: Locks,
  key: string,
  fencingTokens: ReadonlyMap<string, bigint>,
): Promise<string | undefined> {
  try {
    const page = await within(auditLimitMs, locks.admin.audit({ key, limit: auditDepth }));
    const record = page?.records.find(
      ({ result, fencingToken }) => result === "broken" && fencingToken === fencingTokens.get(key),
    );
    return record && sanitizeForTerminal(`broken by ${record.by} (${record.reason})`);
  } catch {
    return undefined; // some engines keep no records, and a token of a service may lack the right to read them
  }
}

/**
 * Watches the lock at a lock service, whose driver learns of a loss at the next renewal. If the watch shows another holder, the lease is
 * renewed at once. Without the scope `lock:read` the next renewal reports the loss.
 */
export function watchLosses({ locks, driver }: Engine, lease: Lease, ttlMs: number): Disposable {
  const end = new AbortController();
  if (driver.capabilities.engine === "http") {
    for (const [key, fencingToken] of lease.fencingTokens) {
      watchHolders(locks, key, end.signal, async (tokens) => {
        if (!tokens.includes(fencingToken)) {
          await lease.extend(ttlMs).catch(() => undefined); // a lost lease aborts its signal
        }
      }).catch(() => undefined);
    }
  }
  return { [Symbol.dispose]: () => end.abort() };
}

async function watchHolders(
  locks: Locks,
  key: string,
  signal: AbortSignal,
  changed: (tokens: readonly (bigint | undefined)[]) => Promise<void>,
): Promise<void> {
  for await (const { state } of locks.admin.watch(key, { signal })) {
    await changed(state.holders.map(({ fencingToken }) => fencingToken));
  }
}
