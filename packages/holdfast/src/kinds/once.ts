import { isLockError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-state.ts";
import { checkObject, checkTtl, invalidValue } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire, TryOptions } from "../options.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { KeyAcquirer } from "./key-acquirer.ts";
import type { LockedCallback, LockRunner, WithLockResult } from "./lockable.ts";

/** Options of `Locks.once`. */
export interface OnceOptions extends Omit<TryOptions, "attemptId" | "minHoldMs"> {
  /**
   * How long the key stays held, counted from the grant: 100 to 86 400 000 ms. In this time no other call runs its work. Choose a time
   * longer than the difference of the clocks, and shorter than the period of the schedule.
   */
  keepMs: number;
  /**
   * The state of the key after a crash of the process. With `"free"` the key is free after at most `ttlMs`, so that another process
   * runs the work again within `keepMs`. With `"keep"` the key stays held for `keepMs`, so that the work starts at most once. After
   * a crash near the end of `keepMs`, or later, the key may stay held for up to `ttlMs` longer.
   * @defaultValue "free"
   */
  ifCrashed?: "free" | "keep" | undefined;
}

interface ResolvedOnce {
  readonly keepMs: number;
  readonly acquire: ResolvedAcquire;
}

/** Runs work once in a period. */
export class OnceRunner {
  readonly #acquirer: KeyAcquirer;
  readonly #runner: LockRunner;
  readonly #clock: Clock;
  readonly #maxTtlMs: number;
  /** Of the kept keys. */
  readonly #timers = new Set<Timer>();

  constructor(
    acquirer: KeyAcquirer,
    runner: LockRunner,
    { clock, maxTtlMs }: { clock: Clock; maxTtlMs: number },
  ) {
    this.#acquirer = acquirer;
    this.#runner = runner;
    this.#clock = clock;
    this.#maxTtlMs = maxTtlMs;
  }

  /** Validates options. @throws {TypeError | RangeError} */
  resolve(options: OnceOptions, defaults: ResolvedAcquire): ResolvedOnce {
    checkObject("options", options);
    const { keepMs, ifCrashed = "free", ...rest } = options;
    if (ifCrashed !== "free" && ifCrashed !== "keep") {
      throw invalidValue("ifCrashed", '"free" or "keep"', ifCrashed);
    }
    const kept = checkTtl("keepMs", keepMs, this.#maxTtlMs);
    if ((rest as AcquireOptions).attemptId !== undefined) {
      throw new TypeError("Expected no `attemptId`, because repeats of an attempt would share the lease");
    }
    if ((rest as AcquireOptions).minHoldMs !== undefined) {
      throw new TypeError("Expected no `minHoldMs`, because `keepMs` is the time that the key stays held");
    }
    const acquire = this.#acquirer.resolveTry(rest, defaults);
    const ttlMs = Math.min(acquire.ttlMs, kept);
    // Renewals that added `keepMs` again would keep the key for longer. They never shorten the first TTL.
    const firstTtlMs = ifCrashed === "keep" ? kept : undefined;
    return { keepMs: kept, acquire: { ...acquire, ttlMs, firstTtlMs, waitMs: 0, minHoldMs: 0 } };
  }

  async run<T>(
    key: string,
    { keepMs, acquire }: ResolvedOnce,
    work: LockedCallback<T>,
  ): Promise<WithLockResult<T>> {
    let lease: LeaseHandle;
    try {
      lease = await this.#acquirer.acquireUnshared(key, acquire);
    } catch (error) {
      if (isLockError(error, "wait-timeout")) {
        return { ran: false, holder: error.holder };
      }
      throw error;
    }
    const keptUntil = this.#clock.now() + keepMs;
    const value = await this.#runner.run(lease, acquire, work, () => this.#keep(lease, keptUntil));
    return { ran: true, value };
  }

  /** Leaves the kept keys to their TTL. */
  close(): void {
    for (const timer of this.#timers) {
      this.#clock.clearTimer(timer);
    }
    this.#timers.clear();
  }

  /**
   * Leaves the key held until a time, also after the end of the process. If the engine does not confirm that, renewals go on while the
   * process lives. @returns whether the lease held the key until now
   */
  async #keep(lease: LeaseHandle, until: number): Promise<boolean> {
    const remainingMs = until - this.#clock.now();
    if (remainingMs <= 0) {
      return lease.release();
    }
    try {
      if (lease.remainingMs() < remainingMs) {
        await lease.extend(Math.max(100, Math.ceil(remainingMs)));
      }
      lease.orphan();
    } catch (error) {
      if (isLockError(error, "lease-lost")) {
        return false;
      }
    }
    const timer = this.#clock.setTimer(() => {
      this.#timers.delete(timer);
      lease.release().catch(() => false);
    }, remainingMs);
    this.#timers.add(timer);
    return true;
  }
}
