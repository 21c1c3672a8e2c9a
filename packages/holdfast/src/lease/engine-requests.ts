import type { ExtendResult, Grant, HolderInfo } from "../driver.ts";
import type { LeaseFacts } from "../diagnostics.ts";
import { engineExpiry, extendValidity, remainingValidityMs } from "../validity.ts";
import type { LeaseHost } from "./lease-host.ts";
import { traceRenewal } from "./lease-trace.ts";

/** The parts of a lease that its requests to the engine need. */
interface GrantedLease {
  readonly grant: Grant;
  readonly fencingToken: bigint;
  facts(): LeaseFacts;
  /** The engine knows that the fencing token of this lease is the last one of its grant. */
  lastConfirmed(): void;
}

/**
 * Extends the grant of a lease, and declares every lease on the grant lost if the engine no longer has it.
 * The request carries a report for `inspect` if the engine keeps one. The report replaces the last one.
 */
export function requestExtension<State extends GrantedLease>(
  host: LeaseHost<State>,
  lease: State,
  ttlMs: number,
  info: HolderInfo | undefined,
): Promise<ExtendResult> {
  const margin = (): number => remainingValidityMs(lease.grant.validity, host.clock);
  return traceRenewal(lease, ttlMs, margin, () => sendExtension(host, lease, ttlMs, info));
}

/**
 * Extends the grant of a lease, and its validity. Rejects if the engine does not reply.
 * @returns whether the engine has the grant
 */
export async function extendGrant<State extends GrantedLease>(
  host: LeaseHost<State>,
  lease: State,
  ttlMs: number,
  info: HolderInfo | undefined,
): Promise<boolean> {
  const extension = await requestExtension(host, lease, ttlMs, info);
  if (extension.outcome === "unknown") {
    throw extension.error;
  } else if (extension.outcome === "extended") {
    extendValidity(lease.grant.validity, extension.validity, host.clock);
  }
  return extension.outcome === "extended";
}

async function sendExtension<State extends GrantedLease>(
  host: LeaseHost<State>,
  lease: State,
  ttlMs: number,
  info: HolderInfo | undefined,
): Promise<ExtendResult> {
  const { grant, fencingToken } = lease;
  const { key, token, validity } = grant;
  validity.engineUntil = Math.max(validity.engineUntil ?? 0, host.clock.now() + ttlMs);
  const waiting = host.localWaitersToReport(lease);
  const isLast = !host.mayHandOver(lease);
  const isInBlock = grant.fencingCount > 1;
  const hasReport = info !== undefined || isInBlock || waiting !== undefined;
  const extension = await host.driver.extend({
    key,
    token,
    fencingToken,
    ttlMs,
    info: hasReport ? { ...info, fencingToken, isLast, ...waiting } : undefined,
  });
  if (extension.outcome === "extended" && isLast) {
    lease.lastConfirmed();
  }
  if (extension.outcome === "lost") {
    host.markLost(token, extension.reason); // also a lease to which the grant was handed over during the request
  }
  return extension;
}

/** Declares every lease on the grant lost if the engine reports that the grant has ended. */
export async function verifyGrant<State>(host: LeaseHost<State>, { key, token }: Grant): Promise<void> {
  const verified = await host.driver.verify(key, token).catch(() => undefined);
  if (verified?.outcome === "lost") {
    host.markLost(token, verified.reason);
  }
}

/**
 * Releases the grant of a lost lease without waiting for the reply, so that the next holder need not wait for the TTL.
 * An adopted grant is not released, because another lease on it may be in force.
 * @returns false, because the lease was lost before its release
 */
export function releaseLostGrant<State>(
  { driver }: LeaseHost<State>,
  { key, token, validity }: Grant,
  isAdopted = false,
): Promise<boolean> {
  if (!isAdopted) {
    driver.release(key, token, engineExpiry(validity)).catch(() => false);
  }
  return Promise.resolve(false);
}

/** Turns a writer's grant into a reader's, and declares every lease on the grant lost if the engine no longer has it. */
export async function downgradeGrant<State>(
  host: LeaseHost<State>,
  { key, token, validity }: Grant,
): Promise<void> {
  const confirmed = host.driver.downgrade(key, token, engineExpiry(validity));
  if (!(await confirmed.catch(() => true))) {
    host.markLost(token, "expired");
  }
}
