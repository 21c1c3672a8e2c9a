import { whenAborted } from "../runtime/abort-listeners.ts";
import type { Contention } from "../local/coordinator.ts";
import { isLockError, LockError, WaitTimeoutError, type LossReason } from "../errors.ts";
import {
  BaseLease,
  controllerOf,
  type HeldLease,
  type OwnedLease,
  type SerializedLease,
} from "../lease/lease.ts";
import type { Way } from "./lockable.ts";
import { refusal, type AcquireOptions, type ResolvedAcquire } from "../options.ts";
import { Joint } from "./joint-acquire.ts";
import type { Mutexes } from "./mutex.ts";
import { SharedLease } from "./reentrant-hold.ts";

const mostKeys = 64;
const shortestWaitMs = 50;

/**
 * Several keys under one lease: every key or none. Who waits takes the keys one after another in sorted order and keeps what he
 * has, so that no two wait for each other, in whatever order their callers named them.
 */
export class Alls {
  readonly #contention: Contention;
  readonly #mutexes: Mutexes;
  readonly #attempts: Joint<SharedLease>;

  constructor(contention: Contention, mutexes: Mutexes) {
    this.#contention = contention;
    this.#mutexes = mutexes;
    this.#attempts = new Joint(contention, (nest) => new SharedLease(nest));
  }

  /** @param keys from {@link distinctKeys} */
  way(
    keys: readonly string[],
    defaults: ResolvedAcquire,
  ): Way<AcquireOptions, ResolvedAcquire, LeaseOfAll | SharedLease> {
    return {
      resolve: (options) => this.#mutexes.resolve(options, defaults),
      resolveTry: (options) => this.#mutexes.resolveTry(options, defaults),
      acquire: (options) =>
        options.attemptId === undefined ? this.#acquire(keys, options) : this.#acquireShared(keys, options),
      try: (options) =>
        options.attemptId === undefined ? this.#try(keys, options) : this.#tryShared(keys, options),
    };
  }

  /** A repeat names the same keys. It has all that the first one has. */
  async #acquireShared(keys: readonly string[], options: ResolvedAcquire): Promise<SharedLease> {
    const lease = await this.#attempts.acquire(nameOf(keys, options), options, ({ waitMs }) =>
      this.#acquire(keys, { ...options, waitMs }),
    );
    if (!lease) {
      throw new WaitTimeoutError(keys[0] as string, options.waitMs);
    }
    return lease;
  }

  #tryShared(keys: readonly string[], options: ResolvedAcquire): Promise<SharedLease | null> {
    return this.#attempts.try(nameOf(keys, options), options, ({ signal }) =>
      this.#try(keys, { ...options, signal }),
    );
  }

  async #acquire(keys: readonly string[], options: ResolvedAcquire): Promise<LeaseOfAll> {
    const { clock } = this.#contention;
    const deadline = clock.now() + options.waitMs;
    const atOnce = await this.#atOnce(keys, options).catch((error: unknown) => {
      if (clock.now() >= deadline) {
        throw error; // to ask for one after another would take as long again
      }
      return goOn(error);
    });
    if (atOnce) {
      return atOnce;
    }
    for (;;) {
      const leases = await this.#gather(keys, options, deadline);
      const lease = await this.#settle(leases, options);
      if (lease) {
        return lease;
      }
    }
  }

  /** What we have is renewed while we wait for the rest. */
  async #gather(
    keys: readonly string[],
    options: ResolvedAcquire,
    deadline: number,
  ): Promise<readonly HeldLease[]> {
    const { clock } = this.#contention;
    const leases: HeldLease[] = [];
    const kept = { ...options, renew: true, maxHoldMs: Infinity, ifLost: "abort" } as const;
    try {
      for (const key of keys) {
        const leftMs = deadline - clock.now();
        // What waiting for others has left may be too little for an answer: then it is tried once.
        const isTooLittle = leftMs < options.waitMs && leftMs < shortestWaitMs;
        const waitMs = isTooLittle ? 0 : Math.max(0, leftMs);
        leases.push(await this.#mutexes.acquireAlone(key, { ...kept, waitMs }));
      }
      return leases;
    } catch (error) {
      await giveBack(leases);
      throw error instanceof WaitTimeoutError && error.key !== undefined
        ? new WaitTimeoutError(error.key, options.waitMs, error.holder, error.position)
        : error;
    }
  }

  /** Null: one was lost while we waited for the others. */
  async #settle(leases: readonly HeldLease[], options: ResolvedAcquire): Promise<LeaseOfAll | null> {
    try {
      if (!options.renew) {
        await Promise.all(leases.map((lease) => lease.keepFor(options.ttlMs)));
      }
      if (areHeld(leases)) {
        for (const lease of leases) {
          lease.endIn(options.maxHoldMs);
        }
        return new LeaseOfAll(leases, options);
      }
    } catch (error) {
      await giveBack(leases);
      if (areHeld(leases)) {
        throw error;
      }
      return null;
    }
    await giveBack(leases);
    return null;
  }

  /** In one step, where all are free and the engine can: null where one is held, undefined where it cannot. */
  async #atOnce(keys: readonly string[], options: ResolvedAcquire): Promise<LeaseOfAll | null | undefined> {
    if (keys.length === 1) {
      return undefined;
    }
    const leases = await this.#mutexes.tryTogether(keys, { ...options, ifLost: "abort" });
    if (!leases || areHeld(leases)) {
      return leases && new LeaseOfAll(leases, options);
    }
    await giveBack(leases);
    return null;
  }

  async #try(keys: readonly string[], options: ResolvedAcquire): Promise<LeaseOfAll | null> {
    const atOnce = await this.#atOnce(keys, options);
    if (atOnce !== undefined) {
      return atOnce;
    }
    const tries = await Promise.allSettled(
      keys.map((key) => this.#mutexes.tryAlone(key, { ...options, ifLost: "abort" })),
    );
    const leases = tries.flatMap((tried) =>
      tried.status === "fulfilled" && tried.value ? [tried.value] : [],
    );
    if (leases.length === keys.length && areHeld(leases)) {
      return new LeaseOfAll(leases, options);
    }
    await giveBack(leases);
    const failed = tries.find((tried) => tried.status === "rejected");
    if (failed) {
      throw failed.reason;
    }
    return null;
  }
}

/** In sorted order, each once. @throws {TypeError | RangeError} where it is no list of 1 to 64 keys */
export function distinctKeys(keys: readonly string[], check: (key: string) => string): readonly string[] {
  if (!Array.isArray(keys)) {
    throw refusal("keys", "an array of keys", keys);
  }
  const distinct = Array.from(new Set(keys.map(check))).sort();
  if (distinct.length === 0 || distinct.length > mostKeys) {
    throw new RangeError(`Expected \`keys\` to have 1 to ${mostKeys} different keys, got ${distinct.length}`);
  }
  return distinct;
}

function nameOf(keys: readonly string[], { attemptId }: ResolvedAcquire): string {
  return JSON.stringify([attemptId, ...keys]);
}

/** One lease on several keys, lost if any of them is lost. Then the others are left to expire, unless it is released. */
export class LeaseOfAll extends BaseLease implements OwnedLease {
  readonly #leases: readonly HeldLease[];
  readonly #ifLost: ResolvedAcquire["ifLost"];
  #controller: AbortController | undefined;
  #loss: { readonly reason: unknown } | undefined;
  #releasing: Promise<boolean> | undefined;

  constructor(leases: readonly HeldLease[], { ifLost }: ResolvedAcquire) {
    super();
    this.#leases = leases;
    this.#ifLost = ifLost;
    for (const lease of leases) {
      whenAborted(lease.signal, (reason) => this.#lost(reason));
    }
  }

  get key(): string {
    return this.#first.key;
  }

  get keys(): readonly string[] {
    return this.#leases.map(({ key }) => key);
  }

  get owner(): string {
    return this.#first.owner;
  }

  get fencingToken(): bigint {
    return this.#first.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return new Map(this.#leases.map(({ key, fencingToken }) => [key, fencingToken]));
  }

  get validUntil(): number {
    return Math.min(...this.#leases.map(({ validUntil }) => validUntil));
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = controllerOf(this);
      this.lossNow();
      this.#abort();
    }
    return this.#controller.signal;
  }

  get wasTransferred(): boolean {
    return false;
  }

  lossNow(): LossReason | undefined {
    return this.#leases.map((lease) => lease.lossNow()).find((reason) => reason !== undefined);
  }

  remainingMs(): number {
    return Math.min(...this.#leases.map((lease) => lease.remainingMs()));
  }

  throwIfLost(): void {
    for (const lease of this.#leases) {
      lease.throwIfLost();
    }
  }

  async extend(ttlMs?: number): Promise<void> {
    this.throwIfLost();
    const extensions = this.#leases.map((lease) => lease.extend(ttlMs));
    await Promise.allSettled(extensions);
    this.throwIfLost();
    await Promise.all(extensions);
  }

  release(): Promise<boolean> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  orphan(): void {
    for (const lease of this.#leases) {
      lease.orphan();
    }
  }

  transfer(): SerializedLease {
    const message = "A lease of several keys cannot be transferred";
    throw new LockError(message, { code: "unsupported", key: this.key });
  }

  get #first(): HeldLease {
    return this.#leases[0] as HeldLease;
  }

  async #release(): Promise<boolean> {
    const releases = this.#leases.map((lease) => lease.release());
    await Promise.allSettled(releases);
    return (await Promise.all(releases)).every(Boolean);
  }

  #lost(reason: unknown): void {
    if (this.#loss || this.#releasing) {
      return;
    }
    this.#loss = { reason };
    for (const lease of this.#leases) {
      lease.orphan(); // of one that is lost already, nothing
    }
    this.#abort();
  }

  #abort(): void {
    if (this.#loss && this.#ifLost === "abort") {
      this.#controller?.abort(this.#loss.reason);
    }
  }
}

/** Who waits lives through an engine that fails for a while. */
function goOn(error: unknown): undefined {
  const isOfEngine = isLockError(error, "engine-unavailable") || isLockError(error, "replicas-not-reached");
  if (!isOfEngine || !error.retryable) {
    throw error;
  }
  return undefined;
}

function areHeld(leases: readonly HeldLease[]): boolean {
  return leases.every((lease) => lease.lossNow() === undefined);
}

async function giveBack(leases: readonly HeldLease[]): Promise<void> {
  await Promise.allSettled(leases.map((lease) => lease.release()));
}
