import type { AcquireOptions, Lease, Lockable, Semaphore, HolderInfo } from "holdfast";
import type { WireMode } from "holdfast/http";

import type { Engine } from "./engine.ts";
import type { WaitLimits } from "./waits.ts";

/** What somebody asks for, checked. */
export interface AcquireCommand {
  /** In sorted order, each once. */
  readonly keys: readonly string[];
  readonly mode: WireMode;
  readonly limit: number;
  readonly permits: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly claimMs: number | undefined;
  readonly attemptId: string | undefined;
  readonly info: HolderInfo;
  readonly principal: string;
}

/** Leases that were asked for, one for each key. */
export interface AcquiredLeases {
  readonly leases: readonly Lease[];
  /** Less than what was asked for where it is a claim. */
  readonly ttlMs: number;
  /** 0: it was free. */
  readonly queuedMs: number;
}

/** Who is told while somebody waits. */
export interface Requester {
  /** Aborted when nobody wants it any more. */
  readonly closed: AbortSignal;
  /** It stands in the engine's queue. */
  onQueued(): void;
}

/**
 * Takes locks for clients. Rejects with a `WaitTimeoutError` where one is held, with the signal's reason, or what the engine said;
 * then nothing is held.
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

  /** It tries first: what is free is granted for the whole TTL, what is waited for perhaps as a claim. */
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

  /** One key after another in sorted order, so that no two wait for each other; what it has is renewed meanwhile. */
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
    const done = this.#waitLimits.begin(key, command.info.owner ?? "", command.principal);
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

/** Who does not wait cannot be too late to leave. */
function optionsOf(
  { ttlMs, waitMs, info }: AcquireCommand,
  requester: Requester,
): Omit<AcquireOptions, "waitMs"> {
  return { ttlMs, ...info, signal: waitMs > 0 ? requester.closed : undefined };
}

/** The library's grant after a wait is a claim at first: our client is not there to see it confirmed. */
async function completeClaim(lease: Lease, ttlMs: number): Promise<void> {
  if (lease.remainingMs() < ttlMs * 0.9) {
    try {
      await lease.extend(ttlMs);
    } catch (error) {
      lease.release().catch(() => false); // it goes on in the background
      throw error;
    }
  }
}

export async function releaseAll(leases: readonly Lease[]): Promise<void> {
  await Promise.allSettled(leases.map((lease) => lease.release()));
}
