import { acquireLease, canTakeTogether, tryLease, tryTogether } from "../acquire.ts";
import type { Contention } from "../contention.ts";
import { isHeard, traced, traces, type AcquireTrace } from "../diagnostics.ts";
import { WaitTimeoutError } from "../errors.ts";
import type { Frames } from "../frames.ts";
import type { HeldLease } from "../lease.ts";
import type { Way } from "../lockable.ts";
import { resolveAcquire, type AcquireOptions, type ResolvedAcquire, type TryOptions } from "../options.ts";

/** The mutex by key, on which the other exclusive kinds stand: refuses what must not reach the engine, and tells of the rest. */
export class Mutexes {
  readonly #contention: Contention;
  readonly #frames: Frames;

  constructor(contention: Contention, frames: Frames) {
    this.#contention = contention;
    this.#frames = frames;
  }

  /** The way to the mutex of one key. */
  way(key: string, defaults: ResolvedAcquire): Way<AcquireOptions, ResolvedAcquire, HeldLease> {
    return {
      resolve: (options) => this.resolve(options, defaults),
      resolveTry: (options) => this.resolveTry(options, defaults),
      acquire: (options) => this.acquire(key, options),
      try: (options) => this.try(key, options),
    };
  }

  resolve(options: AcquireOptions | undefined, defaults: ResolvedAcquire): ResolvedAcquire {
    return resolveAcquire(options, defaults, { maxTtlMs: this.#maxTtlMs });
  }

  resolveTry(options: TryOptions | undefined, defaults: ResolvedAcquire): ResolvedAcquire {
    return resolveAcquire(options, defaults, { maxTtlMs: this.#maxTtlMs, tryOnly: true });
  }

  acquire(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return isHeard(traces.acquire) ? this.#acquireTraced(key, options) : this.#acquireOnce(key, options);
  }

  try(key: string, options: ResolvedAcquire): Promise<HeldLease | null> {
    return traced(
      traces.acquire,
      (): AcquireTrace => ({ key, waitMs: 0 }),
      async () => {
        this.#admit(key, options);
        const tried = await tryLease(this.#contention, key, options);
        return "held" in tried ? null : tried.lease;
      },
      (context, lease) => {
        context.outcome = lease ? "granted" : "held";
        if (lease) {
          context.fencingToken = lease.fencingToken;
        }
      },
    );
  }

  /** Several keys in one step; undefined where the engine has no such step. */
  async tryTogether(
    keys: readonly string[],
    options: ResolvedAcquire,
  ): Promise<readonly HeldLease[] | null | undefined> {
    for (const key of keys) {
      this.#admit(key, options);
    }
    if (!canTakeTogether(this.#contention, keys)) {
      return undefined;
    }
    return traced(
      traces.acquire,
      (): AcquireTrace => ({ key: keys[0] as string, keys, waitMs: 0 }),
      () => tryTogether(this.#contention, keys, options),
      (context, leases) => {
        context.outcome = leases ? "granted" : "held";
        if (leases?.[0]) {
          context.fencingToken = leases[0].fencingToken;
        }
      },
    );
  }

  #acquireTraced(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return traced(
      traces.acquire,
      (): AcquireTrace => ({ key, waitMs: options.waitMs }),
      () => this.#acquireOnce(key, options),
      (context, lease) => {
        context.outcome = "granted";
        context.fencingToken = lease.fencingToken;
      },
    );
  }

  #acquireOnce(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    try {
      this.#admit(key, options);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    return options.waitMs > 0 ? acquireLease(this.#contention, key, options) : this.#acquireNow(key, options);
  }

  /** Without waiting; where it is held, by whom. */
  async #acquireNow(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    const tried = await tryLease(this.#contention, key, options);
    if ("held" in tried) {
      const { driver } = this.#contention;
      const holder = tried.held.holder ?? (await driver.inspect(key).catch(() => null))?.holders[0];
      throw new WaitTimeoutError(key, 0, holder, tried.held.position);
    }
    return tried.lease;
  }

  /** Refuses what must not reach the engine. */
  #admit(key: string, options: ResolvedAcquire): void {
    this.#contention.refuseClosed(key);
    options.signal?.throwIfAborted();
    if (options.share?.kind !== "semaphore") {
      this.#frames.refuseWithin(key); // of a semaphore there may be permits left
    }
  }

  get #maxTtlMs(): number {
    return this.#contention.driver.capabilities.maxTtlMs;
  }
}
