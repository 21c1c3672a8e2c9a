import type { LossReason } from "../errors.ts";
import type { Grant, HolderInfo } from "../driver.ts";
import {
  checkHolderInfo,
  checkInteger,
  checkOptionNames,
  checkText,
  invalidValue,
  minTtlMs,
} from "../option-checks.ts";
import { inspectAsJson } from "../runtime/plain-values.ts";

/**
 * Exclusive ownership for a limited time: while `remainingMs()` is positive, no other lease holds the lock, unless an operator broke
 * this lease, or another program changed the key. The holder learns of both by a message or the next renewal, so after the next grant.
 * `signal` reports a loss before the validity ends, unless the event loop is blocked at that time. {@link Lease.throwIfLost} reports
 * a loss even if no timer has run.
 */
export interface Lease extends AsyncDisposable {
  /** The key; for several keys the first in sorted order. */
  readonly key: string;
  /** All keys, in sorted order. */
  readonly keys: readonly string[];
  readonly owner: string;
  /**
   * The fencing token of `key`, larger than all earlier ones of that key. A semaphore's fencing token is unique, and larger than those
   * of earlier grants. A lease that was handed over in memory has the next fencing token of its grant.
   */
  readonly fencingToken: bigint;
  /** The fencing token of each key. */
  readonly fencingTokens: ReadonlyMap<string, bigint>;
  /**
   * The loss signal: it aborts at a loss, with a `LeaseLostError` as its reason. A release does not abort it.
   * Without an extension the signal aborts at least 2 ms before the validity ends. If timers of this process run late, it aborts
   * earlier, but at most `ttlMs / 20` and 50 ms before the end. A read of `signal.aborted` reads the clocks, so it is right even if the
   * event loop was blocked.
   */
  readonly signal: AbortSignal;
  /** The end of safe use, on the scale of `performance.now()`. An extension moves it. */
  readonly validUntil: number;
  /**
   * Whether {@link Lease.throwIfLost} would throw now. It reads the clocks, like that call.
   * @example
   * ```ts
   * for (const page of pages) {
   *   if (lease.isLost) break; // the rest belongs to the next holder
   *   await store(page);
   * }
   * ```
   */
  readonly isLost: boolean;
  /**
   * The remaining time of safe use, ms; 0 after a loss or a release.
   * @example
   * ```ts
   * if (lease.remainingMs() < 5_000) return; // too little time for the next step
   * ```
   */
  remainingMs(): number;
  /**
   * A checkpoint between steps. It reads the clocks, so it finds an expired lease even if the event loop was blocked and no timer has
   * run. It finds a broken lease or a deleted key only after their message or the next renewal, for which the event loop must run.
   * @throws {LeaseLostError} the lease is lost; with the reason `released` after a release
   * @example
   * ```ts
   * for (const row of rows) {
   *   lease.throwIfLost();
   *   await write(row, lease.fencingToken);
   * }
   * ```
   */
  throwIfLost(): void;
  /**
   * Extends the lease to at least `ttlMs` from now, and never shortens it.
   * @param ttlMs ms, 100 to 86 400 000; by default the TTL of the lease
   * @throws {LeaseLostError} the lease is lost
   * @throws {EngineError | QuorumError} the engine does not reply; the lease then keeps its earlier validity
   * @example
   * ```ts
   * await lease.extend(120_000); // before work that blocks the event loop for up to two minutes
   * ```
   */
  extend(ttlMs?: number): Promise<void>;
  /**
   * Releases the lock. Later calls return the same result.
   * @returns true if the lease held the lock until the release; false if the lease had been lost
   * @throws {EngineError | QuorumError} the engine does not reply within its command budget, which starts at this call.
   * The release then continues in the background until the TTL has passed, or until `locks.close()`.
   * @example
   * ```ts
   * const wasHeld = await lease.release();
   * ```
   */
  release(): Promise<boolean>;
  /**
   * Ends the renewals, so that the lease expires.
   * @example
   * ```ts
   * lease.orphan(); // the process ends, and nobody may take over before the TTL has passed
   * ```
   */
  orphan(): void;
  /**
   * Ends the lease here, and returns the data with which `Locks.adopt` continues the lease, here or in another process.
   * The data is secret, because it contains the token of the grant. Afterwards `release()` of this lease returns false.
   * @throws {LeaseLostError} the lease is lost
   * @throws {LockError} `unsupported`: the lease has several keys, was orphaned, or shares its grant with other leases
   * @example
   * ```ts
   * child.send(lease.transfer()); // the child process calls `locks.adopt`
   * ```
   */
  transfer(): SerializedLease;
  /** Safe to log: no secret. */
  toJSON(): {
    key: string;
    keys: readonly string[];
    owner: string;
    fencingToken: string;
    remainingMs: number;
  };
}

/** A transferred lease, as plain JSON. It is secret, because `token` is the token of the grant. */
export interface SerializedLease {
  readonly version: 1;
  readonly key: string;
  readonly token: string;
  readonly fencingToken: string;
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The TTL of the lease, ms. */
  readonly ttlMs: number;
}

/** The lease of a writer. */
export interface WriteLease extends Lease {
  /**
   * Returns a read lease on the same grant, with the same fencing token, and admits other readers. This lease ends, and is not lost.
   * Its `release()`, and so the end of its `withLock`, releases the read lease.
   * @throws {LeaseLostError} the lease is lost
   * @throws {LockError} `unsupported`: the lease was adopted, or its `attemptId` lets repeats share the grant
   * @example
   * ```ts
   * const lease = await locks.readWrite("catalogue").write.acquire();
   * await replace();
   * const reading = await lease.downgrade(); // others may read from now on
   * ```
   */
  downgrade(): Promise<Lease>;
}

/** The internal interface of every lease. */
export interface InternalLease extends Lease {
  readonly isTransferred: boolean;
  /** Whether this lease, or the read lease of its downgrade, holds the keys. */
  readonly isInForce: boolean;
  /** The reason of the loss, if the lease is lost. Reads the clocks. */
  currentLoss(): LossReason | undefined;
}

/** Validates the data of {@link Lease.transfer}. Error messages never contain the token. */
export function parseSerialized(serialized: SerializedLease): {
  key: string;
  token: string;
  fencingToken: bigint;
  info: HolderInfo;
  ttlMs: number;
} {
  if (typeof serialized !== "object" || serialized === null || Array.isArray(serialized)) {
    const type = Array.isArray(serialized) ? "an array" : serialized === null ? "null" : typeof serialized;
    throw new TypeError(
      `Expected \`serialized\` to be the result of transfer() (parse its JSON first), got ${type}`,
    );
  }
  checkOptionNames(serialized, [
    "version",
    "key",
    "token",
    "fencingToken",
    "owner",
    "reason",
    "labels",
    "ttlMs",
  ]);
  const { version, key, token, fencingToken, owner, reason, labels, ttlMs } = serialized;
  if (version !== 1) {
    throw invalidValue("serialized.version", "1", version);
  }
  if (typeof token !== "string" || token === "" || token.length > 512) {
    throw new TypeError("Expected `serialized.token` to be the token of a transferred lease");
  }
  if (typeof fencingToken !== "string" || !/^\d{1,39}$/.test(fencingToken)) {
    throw invalidValue("serialized.fencingToken", "a decimal number as text", fencingToken);
  }
  return {
    key: key,
    token,
    fencingToken: BigInt(fencingToken),
    info: checkHolderInfo({ owner: checkText("serialized.owner", owner, 512), reason, labels }),
    ttlMs: checkInteger("serialized.ttlMs", ttlMs, minTtlMs, 86_400_000),
  };
}

/** Writes a lease in the form that {@link parseSerialized} reads. The result contains the token, so it is secret. */
export function serializeLease(
  lease: {
    readonly key: string;
    readonly grant: Grant;
    readonly fencingToken: bigint;
    readonly owner: string;
    readonly ttlMs: number;
  },
  { reason, labels }: HolderInfo = {},
): SerializedLease {
  const { key, grant, fencingToken, owner, ttlMs } = lease;
  return {
    version: 1,
    key,
    token: grant.token,
    fencingToken: fencingToken.toString(),
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    ttlMs,
  };
}

type LeaseJson = ReturnType<Lease["toJSON"]>;

const keepsAlive = Symbol("holdfast.lease");

/** The signal's own answer. */
function abortedOf(signal: AbortSignal): boolean {
  return Reflect.get(Object.getPrototypeOf(signal) as object, "aborted", signal) as boolean;
}

/** The controller of a signal that refers to its lease. While anything refers to the signal, the lease is not garbage. */
export function lossControllerOf(lease: InternalLease): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  Object.defineProperties(signal, {
    [keepsAlive]: { value: lease },
    // A blocked event loop runs no timer, so each read looks at the clocks itself. A loss that it finds aborts the signal at once.
    aborted: { configurable: true, get: () => (lease.currentLoss(), abortedOf(signal)) },
    throwIfAborted: {
      configurable: true,
      value: () => {
        if (signal.aborted) {
          throw signal.reason;
        }
      },
    },
  });
  return controller;
}

/** The members that all leases share. */
export class BaseLease {
  static {
    inspectAsJson(this.prototype as unknown as Lease, "Lease");
  }

  get isInForce(): boolean {
    return (this as unknown as Lease).remainingMs() > 0;
  }

  toJSON(this: Lease): LeaseJson {
    const { key, keys, owner } = this;
    return { key, keys, owner, fencingToken: this.fencingToken.toString(), remainingMs: this.remainingMs() };
  }

  async [Symbol.asyncDispose](this: Lease): Promise<void> {
    // The driver keeps retrying the release. Its failure must not mask the error of the block.
    await this.release().catch(() => false);
  }
}
