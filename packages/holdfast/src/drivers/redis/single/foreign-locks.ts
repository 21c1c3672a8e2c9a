import type { AcquireRequest, AcquireResult, PendingAcquire } from "../../../driver.ts";
import { isLockError } from "../../../errors.ts";
import { lockState, type Holder, type LockState } from "../../../lock-state.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import { pause } from "../../../runtime/timeout.ts";
import type { ObservedLibrary } from "../options.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { foreignLockScript } from "../protocol/scripts.generated.ts";
import { engineError, isTransient } from "../server/errors.ts";
import { foreignPollDelay } from "../server/poll-delays.ts";
import type { RedisServer } from "../server/server.ts";

interface ForeignLocksHost {
  readonly clock: Clock;
  readonly random: Random;
  serverFor(keys: LockKeys): RedisServer;
  keysOf(key: string): LockKeys;
}

/** The content of a key that is no lock of this library. `unknown`: no observed library writes such a content. */
type ForeignLock = "free" | "unknown" | { readonly node: string; readonly holder: Holder };

/** Treats the locks of other libraries as held. Without this class such a key is of another kind, which is an error. */
export class ForeignLocks {
  readonly clock: Clock;
  readonly random: Random;
  readonly #host: ForeignLocksHost;
  readonly #libraries: readonly ObservedLibrary[];

  constructor(host: ForeignLocksHost, libraries: readonly ObservedLibrary[]) {
    this.clock = host.clock;
    this.random = host.random;
    this.#host = host;
    this.#libraries = libraries;
  }

  acquire(request: AcquireRequest, begin: () => PendingAcquire): PendingAcquire {
    return new ObservedAcquire(this, request, begin);
  }

  async inspect(key: string, inspect: () => Promise<LockState>): Promise<LockState> {
    try {
      return await inspect();
    } catch (error) {
      const lock = await this.instead(key, error);
      return lock === "free" ? inspect() : stateOf(key, lock);
    }
  }

  /** Reads the lock of a key whose request failed with this error. @throws the error, if no observed library holds the key */
  async instead(key: string, error: unknown): Promise<Exclude<ForeignLock, "unknown">> {
    if (!isLockError(error) || error.code !== "kind-mismatch") {
      throw error;
    }
    const lock = await this.read(key);
    if (lock === "unknown") {
      throw error;
    }
    return lock;
  }

  async read(key: string): Promise<ForeignLock> {
    const keys = this.#host.keysOf(key);
    const server = this.#host.serverFor(keys);
    const reply = (await server.run(foreignLockScript, [keys[0]], []).catch((error: unknown) => {
      throw engineError(error, key, "none");
    })) as unknown[];
    const [library, field, remainingMs] = [String(reply[0]), String(reply[1]), Number(reply[2])];
    if (library === "free") {
      return "free";
    } else if (!(this.#libraries as readonly string[]).includes(library)) {
      return "unknown";
    }
    const holder = { owner: `${library} ${field}`, ...(remainingMs >= 0 ? { remainingMs } : {}) };
    return { node: server.connection.name, holder };
  }
}

/** A request that waits while another library holds the key. */
class ObservedAcquire implements PendingAcquire {
  readonly result: Promise<AcquireResult>;
  readonly #locks: ForeignLocks;
  readonly #request: AcquireRequest;
  readonly #begin: () => PendingAcquire;
  readonly #cancelled = new AbortController();
  #pending: PendingAcquire;

  constructor(locks: ForeignLocks, request: AcquireRequest, begin: () => PendingAcquire) {
    this.#locks = locks;
    this.#request = request;
    this.#begin = begin;
    this.#pending = begin();
    this.result = this.#run();
  }

  cancel(reason: unknown): void {
    this.#cancelled.abort(reason);
    this.#pending.cancel(reason);
  }

  async #run(): Promise<AcquireResult> {
    for (;;) {
      try {
        return await this.#pending.result;
      } catch (error) {
        const lock = await this.#instead(error);
        const held = lock === "free" ? undefined : await this.#untilFree(lock.holder, lock.failure);
        if (held) {
          return held;
        }
        this.#cancelled.signal.throwIfAborted();
        this.#pending = this.#begin();
      }
    }
  }

  /** Reads the other library's lock. If that fails, a request that waits reads it again. */
  async #instead(error: unknown): Promise<"free" | { readonly holder: Holder; readonly failure?: Error }> {
    const { key, deadline } = this.#request;
    try {
      return await this.#locks.instead(key, error);
    } catch (failure) {
      if (deadline === null || !isTransient(failure)) {
        throw failure;
      }
      return { holder: { owner: "unknown" }, failure: failure as Error };
    }
  }

  /**
   * Waits until no other library holds the key. Throws the failure if no read succeeds before the deadline.
   * @param failed why the first read failed
   * @returns the result, if the deadline passes before
   */
  async #untilFree(first: Holder, failed?: Error): Promise<AcquireResult | undefined> {
    const { key, deadline, waiter } = this.#request;
    const { clock, random } = this.#locks;
    const { signal } = this.#cancelled;
    let [holder, failure] = [first, failed];
    waiter?.onQueued?.(undefined);
    for (let polls = 1; ; polls += 1) {
      const leftMs = (deadline ?? 0) - clock.now();
      if (leftMs <= 0) {
        waiter?.onDequeued();
        if (failure !== undefined) {
          throw failure;
        }
        return { outcome: "held", holder };
      }
      const delayMs = foreignPollDelay(random, 0, holder.owner, polls);
      await pause(clock, Math.min(delayMs, leftMs, (holder.remainingMs ?? Infinity) + 1), true, signal);
      signal.throwIfAborted();
      const lock = await this.#locks.read(key).catch((error: unknown) => {
        if (!isTransient(error)) {
          throw error;
        }
        return { holder: { owner: holder.owner }, failure }; // a known TTL would soon cause polls without a pause
      });
      if (lock === "free" || lock === "unknown") {
        return undefined;
      }
      holder = lock.holder;
      failure = "failure" in lock ? lock.failure : undefined;
    }
  }
}

function stateOf(key: string, { node, holder }: Exclude<ForeignLock, string>): LockState {
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: [holder],
    waiters: [],
    waiterCount: 0,
    remainingMs: holder.remainingMs ?? null,
    fencingToken: null,
    nodes: [{ node, held: true }],
  });
}
