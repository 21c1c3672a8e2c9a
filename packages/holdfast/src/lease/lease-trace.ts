import { publish, trace, traces, type HoldTrace } from "../diagnostics.ts";
import type { LossReason } from "../errors.ts";

/** Publishes the start of a hold. Call it only if the trace has subscribers. */
export function startHoldTrace(key: string, fencingToken: bigint): HoldTrace {
  const holdTrace = { key, fencingToken };
  traces.hold.start.publish(holdTrace);
  traces.hold.end.publish(holdTrace);
  return holdTrace;
}

/** Publishes the end of a hold. @param remainingMs validity at the end, ms; negative if the validity ended first */
export function endHoldTrace(
  holdTrace: HoldTrace,
  reason: LossReason | "transferred",
  remainingMs: number,
): void {
  holdTrace.reason = reason;
  holdTrace.overrunMs = Math.max(0, -remainingMs);
  traces.hold.asyncStart.publish(holdTrace);
  traces.hold.asyncEnd.publish(holdTrace);
}

export function traceRelease(key: string, release: () => Promise<boolean>): Promise<boolean> {
  return trace(
    traces.release,
    () => ({ key }),
    release,
    (context, released) => (context.released = released),
  );
}

/** Reports a lease whose handle was garbage-collected without a release. */
export function reportLeakedLease(key: string, fencingToken: bigint): void {
  publish("leaked", () => ({ key, fencingToken }));
  process.emitWarning(
    `The lease of "${key}" was garbage-collected without a release; it is no longer renewed`,
    {
      code: "HOLDFAST_LEAKED_LEASE",
    },
  );
}
