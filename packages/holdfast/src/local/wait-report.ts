import {
  engineOf,
  isPublished,
  kindOf,
  modeOf,
  nextNumber,
  publish,
  type FactsHost,
  type GrantedVia,
  type LockFacts,
  type WaitPlace,
} from "../diagnostics.ts";
import type { ResolvedAcquire } from "../options.ts";
import type { Clock } from "../runtime/clock.ts";

type WaitHost = FactsHost & { readonly clock: Clock };

/** Reports the wait of one call of acquire in diagnostics. A call that is never queued has none. */
export class WaitReport {
  readonly #host: WaitHost;
  readonly #key: string;
  readonly #options: ResolvedAcquire;
  readonly #since: number;
  #where: WaitPlace | undefined;
  #call: number | undefined;
  #queuedMs: number | undefined;

  private constructor(host: WaitHost, key: string, options: ResolvedAcquire) {
    this.#host = host;
    this.#key = key;
    this.#options = options;
    this.#since = host.clock.now();
  }

  /** Undefined: nothing subscribes to waits. */
  static begin(host: WaitHost, key: string, options: ResolvedAcquire): WaitReport | undefined {
    const isObserved = options.trace !== undefined || isPublished("queued") || isPublished("granted");
    return isObserved ? new WaitReport(host, key, options) : undefined;
  }

  /** Reports the first wait at each place. */
  queued(where: WaitPlace, position: number | undefined): void {
    if (this.#where !== where) {
      this.#where = where;
      publish("queued", () => ({ ...this.#facts(), where, position }));
    }
  }

  granted(fencingToken: bigint, via: GrantedVia): void {
    const queuedMs = this.ended();
    const where = this.#where ?? "process";
    publish("granted", () => ({ ...this.#facts(), where, queuedMs, via, fencingToken }));
  }

  /** Adds the time of this wait to the trace of the call, once. @returns that time, ms */
  ended(): number {
    if (this.#queuedMs === undefined) {
      this.#queuedMs = this.#host.clock.now() - this.#since;
      const { trace } = this.#options;
      if (trace) {
        trace.queuedMs = (trace.queuedMs ?? 0) + this.#queuedMs;
      }
    }
    return this.#queuedMs;
  }

  #facts(): LockFacts & { call: number } {
    const { trace, lockMode } = this.#options;
    this.#call ??= trace?.call ?? nextNumber("call");
    return {
      call: this.#call,
      key: this.#key,
      instance: this.#host.instance,
      engine: engineOf(this.#host),
      kind: kindOf(lockMode),
      mode: modeOf(lockMode),
    };
  }
}
