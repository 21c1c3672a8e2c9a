import type { AcquireOptions, Lease, Lockable, Semaphore, HolderInfo } from "holdfast";
import type { WireMode } from "holdfast/http";

import type { Engine } from "./engine.ts";
import type { WaitLimits } from "./waits.ts";

/** A validated acquire request. */
export interface AcquireCommand {
  /** Sorted, without duplicates. */
  readonly keys: readonly string[];
  readonly mode: WireMode;
  readonly limit: number;
  readonly permits: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly claimMs: number | undefined;
  readonly attemptId: string | undefined;
  readonly info: HolderInfo;
  /** By this name the use of the service is limited. */
  readonly quota: string;
}

/** The leases of one request, one for each key. */
export interface AcquiredLeases {
  readonly leases: readonly Lease[];
  /** Less than the requested TTL if the grant is a claim. */
  readonly ttlMs: number;
  /** The time in the queue, ms. 0: the lock was free. */
  readonly queuedMs: number;
}

/** Receives the progress of a request, and ends it. */
export interface Requester {
  /** Aborted when the client no longer needs the lease. */
  readonly closed: AbortSignal;
  /** The engine has queued the request. */
  onQueued(): void;
}

/**
 * Acquires locks for clients. If a lock stays held, the result rejects with a `WaitTimeoutError`. It also rejects with the signal's
 * reason, or with the engine's error. After a rejection the request holds nothing.
 */
export class AcquireLease {
  readonly #engine: Engine;
  readonly #waitLimits: WaitLimits;

  constructor(engine: Engine, waitLimits: WaitLimits) {
    this.#engine = engine;
    this.#waitLimits = waitLimits;
  }

  run(command: AcquireCommand, requester: Requester, renew: boolean): Promise<AcquiredLeases> {
    return command.keys.length > 1 || renew
      ? this.#acquireMany(command, requester)
      : this.#acquireOne(command, requester);
  }

  /** Tries first, because a try grants a free lock for the whole TTL. A grant after a wait may be a claim. */
  async #acquireOne(command: AcquireCommand, requester: Requester): Promise<AcquiredLeases> {
    const startedAt = performance.now();
    const key = command.keys[0] as string;
    const lockable = this.#lockable(key, command);
    const options = { ...optionsOf(command, requester), renew: false };
    const immediate =
      command.waitMs === 0
        ? await lockable.acquire({ ...options, waitMs: 0 })
        : await lockable.tryAcquire(options);
    if (immediate) {
      return { leases: [immediate], ttlMs: command.ttlMs, queuedMs: 0 };
    }
    const ttlMs = Math.min(command.ttlMs, command.claimMs ?? command.ttlMs);
    const lease = await this.#waitFor(key, {
      command,
      requester,
      lockable,
      startedAt,
      options: { ...options, ttlMs },
    });
    await completeClaim(lease, ttlMs);
    return { leases: [lease], ttlMs, queuedMs: performance.now() - startedAt };
  }

  /**
   * Acquires one key after another, in sorted order, so no two requests wait for each other. The held keys are renewed during the waits.
   */
  async #acquireMany(command: AcquireCommand, requester: Requester): Promise<AcquiredLeases> {
    const startedAt = performance.now();
    const leases: Lease[] = [];
    let queuedMs = 0;
    try {
      for (const key of command.keys) {
        const lockable = this.#lockable(key, command);
        const options = { ...optionsOf(command, requester), renew: true };
        const immediate =
          command.waitMs === 0
            ? await lockable.acquire({ ...options, waitMs: 0 })
            : await lockable.tryAcquire(options);
        leases.push(
          immediate ?? (await this.#waitFor(key, { command, requester, lockable, startedAt, options })),
        );
        queuedMs = immediate ? queuedMs : performance.now() - startedAt;
      }
      if (queuedMs > 0) {
        await Promise.all(leases.map((lease) => lease.extend(command.ttlMs)));
        queuedMs = performance.now() - startedAt;
      }
      for (const lease of leases) {
        lease.throwIfLost();
      }
      return { leases, ttlMs: command.ttlMs, queuedMs };
    } catch (error) {
      await releaseAll(leases);
      throw error;
    }
  }

  async #waitFor(
    key: string,
    { command, requester, lockable, startedAt, options }: PendingWait,
  ): Promise<Lease> {
    const done = this.#waitLimits.begin(key, command.info.owner ?? "", command.quota);
    try {
      const waitMs = Math.max(1, Math.ceil(command.waitMs - (performance.now() - startedAt)));
      const pending = lockable.acquire({ ...options, waitMs });
      requester.onQueued();
      return await pending;
    } finally {
      done();
    }
  }

  /** @throws {TypeError | RangeError | LockError} */
  #lockable(key: string, { mode, limit, permits }: AcquireCommand): Acquirable {
    const { locks } = this.#engine;
    switch (mode) {
      case "exclusive":
        return locks.mutex(key);
      case "read":
      case "write":
        return locks.readWrite(key)[mode];
      case "semaphore":
        return withPermits(locks.semaphore(key, { limit }), permits);
    }
  }
}

interface PendingWait {
  readonly command: AcquireCommand;
  readonly requester: Requester;
  readonly lockable: Acquirable;
  readonly startedAt: number;
  readonly options: AcquireOptions;
}

type Acquirable = Pick<Lockable, "tryAcquire" | "acquire">;

function withPermits(semaphore: Semaphore, permits: number): Acquirable {
  return {
    tryAcquire: (options) => semaphore.tryAcquire({ ...options, permits }),
    acquire: (options) => semaphore.acquire({ ...options, permits }),
  };
}

/** A try needs no signal, because it never waits. */
function optionsOf(
  { ttlMs, waitMs, info }: AcquireCommand,
  requester: Requester,
): Omit<AcquireOptions, "waitMs"> {
  return { ttlMs, ...info, signal: waitMs > 0 ? requester.closed : undefined };
}

/** Extends a claim to the whole TTL. The library grants a claim after a wait, and the client cannot confirm the claim itself. */
async function completeClaim(lease: Lease, ttlMs: number): Promise<void> {
  if (lease.remainingMs() < ttlMs * 0.9) {
    try {
      await lease.extend(ttlMs);
    } catch (error) {
      lease.release().catch(() => false); // the release continues in the background
      throw error;
    }
  }
}

export async function releaseAll(leases: readonly Lease[]): Promise<void> {
  await Promise.allSettled(leases.map((lease) => lease.release()));
}
