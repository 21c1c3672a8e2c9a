import {
  hasSubscribers,
  publish,
  trace,
  traces,
  type HoldTrace,
  type LeaseFacts,
  type RenewTrace,
} from "../diagnostics.ts";
import type { ExtendResult } from "../driver.ts";
import { isLockError, type LossReason } from "../errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { emitWarning } from "../runtime/node-modules.ts";
import type { LeaseStateOptions } from "./lease-host.ts";

/** A lease, as its events name it. */
interface Described {
  facts(): LeaseFacts;
}

/** Reports a hold, from its grant to its end. */
export class HoldReport {
  readonly #context: HoldTrace;
  readonly #clock: Clock;
  readonly #since: number;

  private constructor(context: HoldTrace, clock: Clock) {
    this.#context = context;
    this.#clock = clock;
    this.#since = clock.now();
    traces.hold.start.publish(context);
    traces.hold.end.publish(context);
  }

  /** Undefined: the channel has no subscribers. */
  static start(lease: Described, options: LeaseStateOptions, clock: Clock): HoldReport | undefined {
    if (!hasSubscribers(traces.hold)) {
      return undefined;
    }
    const { ttlMs, trace: acquire } = options;
    return new HoldReport({ ...lease.facts(), ttlMs, ...(acquire && { call: acquire.call }) }, clock);
  }

  /** @param remainingMs validity at the end, ms; negative if the validity ended first */
  end(reason: LossReason | "transferred", remainingMs: number): void {
    const context = this.#context;
    context.reason = reason;
    context.heldMs = this.#clock.now() - this.#since;
    context.overrunMs = Math.max(0, -remainingMs);
    traces.hold.asyncStart.publish(context);
    traces.hold.asyncEnd.publish(context);
  }
}

export function traceRelease(lease: Described, release: () => Promise<boolean>): Promise<boolean> {
  if (!hasSubscribers(traces.release)) {
    return release();
  }
  return trace(
    traces.release,
    () => lease.facts(),
    release,
    (context, settled) => {
      if ("result" in settled) {
        context.released = settled.result;
      } else if (isLockError(settled.error)) {
        context.errorCode = settled.error.code;
      }
    },
  );
}

/** Traces a renewal of the watchdog, or an `extend()` of the caller. @param margin the remaining validity at the start, ms */
export function traceRenewal(
  lease: Described,
  ttlMs: number,
  margin: () => number,
  renew: () => Promise<ExtendResult>,
): Promise<ExtendResult> {
  const describe = (): RenewTrace => ({ ...lease.facts(), ttlMs, marginMs: margin() });
  return trace(traces.renew, describe, renew, (context, settled) => {
    if ("result" in settled) {
      const { result } = settled;
      context.outcome = result.outcome;
      if (result.outcome === "unknown" && isLockError(result.error)) {
        context.errorCode = result.error.code;
      }
    }
  });
}

/** Reports a lease whose handle was garbage-collected without a release. */
export function reportLeakedLease(lease: Described & { readonly key: string }): void {
  publish("leaked", () => lease.facts());
  const message = `The lease of "${lease.key}" was garbage-collected without a release; it is no longer renewed`;
  emitWarning(message, "HOLDFAST_LEAKED_LEASE");
}
