import { acquireLease, canTakeTogether, tryLease, tryTogether } from "../local/acquisition.ts";
import type { Contention } from "../local/coordinator.ts";
import { isHeard, traced, traces, type AcquireTrace } from "../diagnostics.ts";
import { WaitTimeoutError } from "../errors.ts";
import type { Frames } from "./lock-scope.ts";
import type { HeldLease } from "../lease/lease.ts";
import type { Way } from "./lockable.ts";
import { resolveAcquire, type AcquireOptions, type ResolvedAcquire, type TryOptions } from "../options.ts";
import { within } from "../runtime/timeout.ts";
import { Joint } from "./joint-acquire.ts";
import { SharedLease } from "./reentrant-hold.ts";

/** Of a request without a name, or of one that repeats may share. */
export type MutexLease = HeldLease | SharedLease;

/** How long a caller whose time is over waits to learn which owner holds the lock. */
const longestLookMs = 250;

/** The mutex by key, on which the other exclusive kinds stand: refuses what must not reach the engine, and tells of the rest. */
export class Mutexes {
  readonly #contention: Contention;
  readonly #frames: Frames;
  readonly #attempts: Joint<SharedLease>;

  constructor(contention: Contention, frames: Frames) {
    this.#contention = contention;
    this.#frames = frames;
    this.#attempts = new Joint(contention, (nest) => new SharedLease(nest));
  }

  /** The way to the mutex of one key. */
  way(key: string, defaults: ResolvedAcquire): Way<AcquireOptions, ResolvedAcquire, MutexLease> {
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

  acquire(key: string, options: ResolvedAcquire): Promise<MutexLease> {
    return options.attemptId === undefined
      ? this.acquireAlone(key, options)
      : this.#asking(key, options, options.waitMs, () => this.#acquireShared(key, options));
  }

  try(key: string, options: ResolvedAcquire): Promise<MutexLease | null> {
    return options.attemptId === undefined
      ? this.tryAlone(key, options)
      : this.#asking(key, options, 0, () => this.#tryShared(key, options));
  }

  /** A lease that no repeat shares. */
  acquireAlone(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return this.#asking(key, options, options.waitMs, () => this.#acquireOnce(key, options));
  }

  tryAlone(key: string, options: ResolvedAcquire): Promise<HeldLease | null> {
    return this.#asking(key, options, 0, () => this.#tryOnce(key, options));
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
      (context, leases) => tellOutcome(context, leases?.[0]),
    );
  }

  #asking<L extends MutexLease | null>(
    key: string,
    options: ResolvedAcquire,
    waitMs: number,
    ask: () => Promise<L>,
  ): Promise<L> {
    const admitted = (): Promise<L> => {
      try {
        this.#admit(key, options);
      } catch (error) {
        return Promise.reject(error as Error);
      }
      return ask();
    };
    return isHeard(traces.acquire)
      ? traced(traces.acquire, (): AcquireTrace => ({ key, waitMs }), admitted, tellOutcome)
      : admitted();
  }

  #acquireOnce(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return options.waitMs > 0 ? acquireLease(this.#contention, key, options) : this.#acquireNow(key, options);
  }

  async #tryOnce(key: string, options: ResolvedAcquire): Promise<HeldLease | null> {
    const tried = await tryLease(this.#contention, key, options);
    return "held" in tried ? null : tried.lease;
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

  /** A repeat of an attempt shares the lease of the first one. A repeat that asks itself keeps the place of its arrival. */
  async #acquireShared(key: string, options: ResolvedAcquire): Promise<SharedLease> {
    const { driver, clock } = this.#contention;
    const ticket = driver.ticket(key);
    const lease = await this.#attempts.acquire(nameOf(key, options), options, ({ waitMs }) =>
      this.#acquireOnce(key, { ...options, waitMs, ticket }),
    );
    if (!lease) {
      const look = driver.inspect(key).catch(() => undefined);
      const state = await within(clock, longestLookMs, look);
      throw new WaitTimeoutError(key, options.waitMs, state?.holders[0]);
    }
    return lease;
  }

  #tryShared(key: string, options: ResolvedAcquire): Promise<SharedLease | null> {
    return this.#attempts.try(nameOf(key, options), options, ({ signal }) =>
      this.#tryOnce(key, { ...options, signal }),
    );
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

function tellOutcome(context: AcquireTrace, lease: MutexLease | null | undefined): void {
  context.outcome = lease ? "granted" : "held";
  if (lease) {
    context.fencingToken = lease.fencingToken;
  }
}

/** The name of an attempt. Another mode, or another number of permits, is another attempt; a limit may be changed between repeats. */
function nameOf(key: string, { share, attemptId }: ResolvedAcquire): string {
  const mode = share?.kind === "semaphore" ? share.permits : share?.mode;
  return JSON.stringify([key, share?.kind, mode, attemptId]);
}
