import type { AcquireOptions, Lease, Lockable, Semaphore, Words } from "holdfast";
import type { WireMode } from "holdfast/http";

import type { Engine } from "./engine.ts";
import type { Waits } from "./waits.ts";

/** What somebody asks for, checked. */
export interface Ask {
  /** In sorted order, each once. */
  readonly keys: readonly string[];
  readonly mode: WireMode;
  readonly limit: number;
  readonly permits: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly claimMs: number | undefined;
  readonly attemptId: string | undefined;
  readonly words: Words;
  readonly principal: string;
}

/** Leases that were asked for, one for each key. */
export interface Taken {
  readonly leases: readonly Lease[];
  /** Less than what was asked for where it is a claim. */
  readonly ttlMs: number;
  /** 0: it was free. */
  readonly queuedMs: number;
}

/** Who is told while somebody waits. */
export interface Asker {
  /** Aborted when nobody wants it any more. */
  readonly over: AbortSignal;
  /** It stands in the engine's queue. */
  waiting(): void;
}

/**
 * Takes locks for clients. Rejects with a `WaitTimeoutError` where one is held, with the signal's reason, or what the engine said;
 * then nothing is held.
 */
export class Taking {
  readonly #engine: Engine;
  readonly #waits: Waits;

  constructor(engine: Engine, waits: Waits) {
    this.#engine = engine;
    this.#waits = waits;
  }

  take(ask: Ask, asker: Asker, renew: boolean): Promise<Taken> {
    return ask.keys.length > 1 || renew ? this.#takeAll(ask, asker) : this.#takeOne(ask, asker);
  }

  /** It tries first: what is free is granted for the whole TTL, what is waited for perhaps as a claim. */
  async #takeOne(ask: Ask, asker: Asker): Promise<Taken> {
    const begun = performance.now();
    const key = ask.keys[0] as string;
    const lockable = this.#lockable(key, ask);
    const options = { ...optionsOf(ask, asker), renew: false };
    const atOnce =
      ask.waitMs === 0
        ? await lockable.acquire({ ...options, waitMs: 0 })
        : await lockable.tryAcquire(options);
    if (atOnce) {
      return { leases: [atOnce], ttlMs: ask.ttlMs, queuedMs: 0 };
    }
    const ttlMs = Math.min(ask.ttlMs, ask.claimMs ?? ask.ttlMs);
    const lease = await this.#wait(key, { ask, asker, lockable, begun, options: { ...options, ttlMs } });
    await makeWhole(lease, ttlMs);
    return { leases: [lease], ttlMs, queuedMs: performance.now() - begun };
  }

  /** One key after another in sorted order, so that no two wait for each other; what it has is renewed meanwhile. */
  async #takeAll(ask: Ask, asker: Asker): Promise<Taken> {
    const begun = performance.now();
    const leases: Lease[] = [];
    let queuedMs = 0;
    try {
      for (const key of ask.keys) {
        const lockable = this.#lockable(key, ask);
        const options = { ...optionsOf(ask, asker), renew: true };
        const atOnce =
          ask.waitMs === 0
            ? await lockable.acquire({ ...options, waitMs: 0 })
            : await lockable.tryAcquire(options);
        leases.push(atOnce ?? (await this.#wait(key, { ask, asker, lockable, begun, options })));
        queuedMs = atOnce ? queuedMs : performance.now() - begun;
      }
      if (queuedMs > 0) {
        await Promise.all(leases.map((lease) => lease.extend(ask.ttlMs)));
        queuedMs = performance.now() - begun;
      }
      for (const lease of leases) {
        lease.throwIfLost();
      }
      return { leases, ttlMs: ask.ttlMs, queuedMs };
    } catch (error) {
      await giveBackAll(leases);
      throw error;
    }
  }

  async #wait(key: string, { ask, asker, lockable, begun, options }: Wait): Promise<Lease> {
    const done = this.#waits.begin(key, ask.words.owner ?? "", ask.principal);
    try {
      const waitMs = Math.max(1, Math.ceil(ask.waitMs - (performance.now() - begun)));
      const pending = lockable.acquire({ ...options, waitMs });
      asker.waiting();
      return await pending;
    } finally {
      done();
    }
  }

  /** @throws {TypeError | RangeError | LockError} */
  #lockable(key: string, { mode, limit, permits }: Ask): Acquirable {
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

interface Wait {
  readonly ask: Ask;
  readonly asker: Asker;
  readonly lockable: Acquirable;
  readonly begun: number;
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
function optionsOf({ ttlMs, waitMs, words }: Ask, asker: Asker): Omit<AcquireOptions, "waitMs"> {
  return { ttlMs, ...words, signal: waitMs > 0 ? asker.over : undefined };
}

/** The library's grant after a wait is a claim at first: our client is not there to see it confirmed. */
async function makeWhole(lease: Lease, ttlMs: number): Promise<void> {
  if (lease.remainingMs() < ttlMs * 0.9) {
    try {
      await lease.extend(ttlMs);
    } catch (error) {
      lease.release().catch(() => false); // it goes on in the background
      throw error;
    }
  }
}

export async function giveBackAll(leases: readonly Lease[]): Promise<void> {
  await Promise.allSettled(leases.map((lease) => lease.release()));
}
