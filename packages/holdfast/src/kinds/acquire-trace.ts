import {
  engineOf,
  kindOf,
  modeOf,
  nextNumber,
  type AcquireOutcome,
  type AcquireTrace,
  type FactsHost,
  type Settled,
} from "../diagnostics.ts";
import type { HolderInfo } from "../driver.ts";
import { isLockError, type LockErrorCode } from "../errors.ts";
import type { Lease } from "../lease/lease.ts";
import { checkHolderInfo } from "../option-checks.ts";
import type { ResolvedAcquire } from "../options.ts";

/** The context of one acquire. */
export function acquireTrace(
  host: FactsHost,
  key: string,
  { lockMode, ttlMs }: ResolvedAcquire,
  waitMs: number,
): AcquireTrace {
  return {
    key,
    instance: host.instance,
    engine: engineOf(host),
    kind: kindOf(lockMode),
    mode: modeOf(lockMode),
    call: nextNumber("call"),
    waitMs,
    ttlMs,
    labels: undefined,
    outcome: undefined,
    queuedMs: undefined,
    via: undefined,
    fencingToken: undefined,
    errorCode: undefined,
    error: undefined,
  };
}

/** The options of a traced acquire, with the labels that a subscriber has added. */
export function tracedOptions(options: ResolvedAcquire, trace: AcquireTrace): ResolvedAcquire {
  const { labels } = trace;
  return labels ? { ...options, trace, info: withLabels(options.info, labels) } : { ...options, trace };
}

/** Adds the end of the acquire to its context. */
export function finishAcquire(
  context: AcquireTrace,
  settled: Settled<Lease | null | undefined>,
  signal: AbortSignal | undefined,
): void {
  context.queuedMs ??= 0;
  if ("error" in settled) {
    const { error } = settled;
    context.outcome = outcomeOf(error, context.waitMs, signal);
    if (isLockError(error)) {
      context.errorCode = error.code;
    }
  } else if (settled.result) {
    context.outcome = "granted";
    context.via ??= "shared";
    context.fencingToken = settled.result.fencingToken;
  } else {
    context.outcome = "held";
  }
}

function outcomeOf(error: unknown, waitMs: number, signal: AbortSignal | undefined): AcquireOutcome {
  if (!isLockError(error)) {
    return signal?.aborted === true ? "aborted" : "error";
  }
  return error.code === "wait-timeout" && waitMs === 0 ? "held" : (outcomes[error.code] ?? "error");
}

const outcomes: Readonly<Partial<Record<LockErrorCode, AcquireOutcome>>> = {
  "wait-timeout": "wait-timeout",
  "quorum-not-reached": "quorum-failed",
  "engine-unavailable": "unavailable",
  "replicas-not-reached": "unavailable",
  closed: "aborted",
};

/** The caller's own labels win. Labels beyond the limits are dropped, because diagnostics must not fail an acquire. */
function withLabels(
  info: HolderInfo | undefined,
  labels: Readonly<Record<string, string>>,
): HolderInfo | undefined {
  try {
    return checkHolderInfo({ ...info, labels: { ...labels, ...info?.labels } });
  } catch {
    return info;
  }
}
