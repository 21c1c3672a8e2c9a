import {
  engineOf,
  hasSubscribers,
  kindOf,
  modeOf,
  publish,
  trace,
  traces,
  type FactsHost,
  type HoldTrace,
  type LeaseFacts,
  type RenewTrace,
} from "../diagnostics.ts";
import type { ExtendResult, LockMode } from "../driver.ts";
import { isLockError, type LossReason } from "../errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { emitWarning } from "../runtime/node-modules.ts";
import type { LeaseStateOptions } from "./lease-host.ts";

/** A lease, as its events name it. */
interface Described {
  facts(): LeaseFacts;
}

/** The facts of a lease for its events. @param lockMode null: unknown */
export function leaseFacts(
  host: FactsHost,
  { key, fencingToken }: { readonly key: string; readonly fencingToken: bigint },
  lockMode: LockMode | null | undefined,
): LeaseFacts {
  const { instance } = host;
  const [engine, kind, mode] = [engineOf(host), kindOf(lockMode), modeOf(lockMode)];
  return { key, instance, engine, kind, mode, fencingToken };
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
    const { key, instance, engine, kind, mode, fencingToken } = lease.facts();
    const [ttlMs, call] = [options.ttlMs, options.trace?.call];
    const end = { reason: undefined, heldMs: undefined, overrunMs: undefined };
    return new HoldReport({ key, instance, engine, kind, mode, fencingToken, call, ttlMs, ...end }, clock);
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
    () => {
      const { key, instance, engine, kind, mode, fencingToken } = lease.facts();
      const end = undefined;
      return { key, instance, engine, kind, mode, fencingToken, released: end, errorCode: end, error: end };
    },
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
  const describe = (): RenewTrace => ({
    ...lease.facts(),
    ttlMs,
    marginMs: margin(),
    outcome: undefined,
    errorCode: undefined,
  });
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
