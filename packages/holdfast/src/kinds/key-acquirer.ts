import {
  type AcquireOutcome,
  type AcquireTrace,
  engineOf,
  type FactsHost,
  hasSubscribers,
  kindOf,
  modeOf,
  nextNumber,
  type Settled,
  trace,
  traces,
} from "../diagnostics.ts";
import type { HolderInfo } from "../driver.ts";
import { isLockError, type LockErrorCode, WaitTimeoutError } from "../errors.ts";
import type { Lease } from "../lease/lease.ts";
import { checkHolderInfo } from "../option-checks.ts";
import { type AcquireOptions, resolveAcquire, type ResolvedAcquire, type TryOptions } from "../options.ts";
import { acquire, tryAcquire, WaitReport } from "../local/acquisition.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { leaseOrNull, type AcquireStrategy, type LockScope, type Tried } from "./lockable.ts";
import type { LeaseHandle } from "../lease/lease-state.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { AttemptSharing, JoinedLease } from "./attempt-sharing.ts";

/** The context of one acquire. */
function acquireTrace(
  host: FactsHost,
  key: string,
  { lockMode, ttlMs }: ResolvedAcquire,
  waitMs: number,
): AcquireTrace {
  return {
    key,
    instance: host.instance,
    engine: engineOf(host),
    kind: kindOf(lockMode),
    mode: modeOf(lockMode),
    call: nextNumber("call"),
    waitMs,
    ttlMs,
    labels: undefined,
    outcome: undefined,
    queuedMs: undefined,
    via: undefined,
    fencingToken: undefined,
    errorCode: undefined,
    error: undefined,
  };
}

/** The options of a traced acquire, with the labels that a subscriber has added. */
function tracedOptions(options: ResolvedAcquire, trace: AcquireTrace): ResolvedAcquire {
  const { ttlMs, waitMs, signal, renew, maxHoldMs, minHoldMs, ifLost, info, attemptId, lockMode } = options;
  return {
    ttlMs,
    firstTtlMs: options.firstTtlMs,
    waitMs,
    signal,
    renew,
    maxHoldMs,
    minHoldMs,
    ifLost,
    info: trace.labels ? withLabels(info, trace.labels) : info,
    attemptId,
    lockMode,
    trace,
    ticket: options.ticket,
  }; // not spread, which costs more than the rest of the trace
}

/** Adds the end of the acquire to its context. */
function finishAcquire(
  context: AcquireTrace,
  settled: Settled<Lease | Tried<Lease>>,
  signal: AbortSignal | undefined,
): void {
  context.queuedMs ??= 0;
  if ("error" in settled) {
    const { error } = settled;
    context.outcome = outcomeOf(error, context.waitMs, signal);
    if (isLockError(error)) {
      context.errorCode = error.code;
    }
    return;
  }
  const { result } = settled;
  const lease = "key" in result ? result : leaseOrNull(result);
  context.outcome = lease ? "granted" : "held";
  if (lease) {
    context.via ??= "shared";
    context.fencingToken = lease.fencingToken;
  }
}

function outcomeOf(error: unknown, waitMs: number, signal: AbortSignal | undefined): AcquireOutcome {
  if (!isLockError(error)) {
    return signal?.aborted === true ? "aborted" : "error";
  }
  return error.code === "wait-timeout" && waitMs === 0 ? "held" : (outcomes[error.code] ?? "error");
}

const outcomes: Readonly<Partial<Record<LockErrorCode, AcquireOutcome>>> = {
  "wait-timeout": "wait-timeout",
  "quorum-not-reached": "quorum-failed",
  "engine-unavailable": "unavailable",
  "replicas-not-reached": "unavailable",
  closed: "aborted",
};

/** The caller's own labels win. Labels beyond the limits are dropped, because diagnostics must not fail an acquire. */
function withLabels(
  info: HolderInfo | undefined,
  labels: Readonly<Record<string, string>>,
): HolderInfo | undefined {
  try {
    return checkHolderInfo({ ...info, labels: { ...labels, ...info?.labels } });
  } catch {
    return info;
  }
}

/** A lease of one caller, or a lease that repeats of an attempt share. */
export type MutexLease = LeaseHandle | JoinedLease;

/** The longest time to look up the holder for a `WaitTimeoutError`. */
const maxInspectMs = 250;

/** Acquires locks by key, for all kinds. Refuses calls that must not reach the engine, and traces the others. */
export class KeyAcquirer {
  readonly #coordinator: LocalCoordinator;
  readonly #scope: LockScope;
  readonly #sharedAttempts: AttemptSharing<JoinedLease>;

  constructor(coordinator: LocalCoordinator, scope: LockScope) {
    this.#coordinator = coordinator;
    this.#scope = scope;
    this.#sharedAttempts = new AttemptSharing(coordinator, (hold) => new JoinedLease(hold));
  }

  /** The strategy for one key. */
  strategy(
    key: string,
    defaults: ResolvedAcquire,
  ): AcquireStrategy<AcquireOptions, ResolvedAcquire, MutexLease> {
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
      ? this.acquireUnshared(key, options)
      : this.#admitAndTrace(key, options, options.waitMs, (traced) => this.#acquireShared(key, traced));
  }

  try(key: string, options: ResolvedAcquire): Promise<Tried<MutexLease>> {
    return options.attemptId === undefined
      ? this.tryAlone(key, options)
      : this.#admitAndTrace(key, options, 0, (traced) => this.#tryShared(key, traced));
  }

  /** Acquires a lease that no repeat shares. */
  acquireUnshared(key: string, options: ResolvedAcquire): Promise<LeaseHandle> {
    return this.#admitAndTrace(key, options, options.waitMs, (traced) => this.#acquireOnce(key, traced));
  }

  tryAlone(key: string, options: ResolvedAcquire): Promise<Tried<LeaseHandle>> {
    return this.#admitAndTrace(key, options, 0, (traced) => this.#tryOnce(key, traced));
  }

  #admitAndTrace<L extends MutexLease | Tried<MutexLease>>(
    key: string,
    options: ResolvedAcquire,
    waitMs: number,
    request: (options: ResolvedAcquire) => Promise<L>,
  ): Promise<L> {
    if (!hasSubscribers(traces.acquire)) {
      return this.#admit(key, options, request);
    }
    const context = acquireTrace(this.#coordinator, key, options, waitMs);
    return trace(
      traces.acquire,
      () => context,
      () => this.#admit(key, tracedOptions(options, context), request),
      (ended, settled) => finishAcquire(ended, settled, options.signal),
    );
  }

  #admit<L>(
    key: string,
    options: ResolvedAcquire,
    request: (options: ResolvedAcquire) => Promise<L>,
  ): Promise<L> {
    try {
      this.#assertAllowed(key, options);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const { starting } = this.#coordinator;
    return starting ? starting.then(() => this.#admit(key, options, request)) : request(options);
  }

  #acquireOnce(key: string, options: ResolvedAcquire): Promise<LeaseHandle> {
    return options.waitMs > 0 ? acquire(this.#coordinator, key, options) : this.#acquireNow(key, options);
  }

  async #tryOnce(key: string, options: ResolvedAcquire): Promise<Tried<LeaseHandle>> {
    const tried = await tryAcquire(this.#coordinator, key, options);
    return "held" in tried ? { holder: tried.held.holder } : tried;
  }

  /** Tries once. If the lock is held, the error names the holder. */
  async #acquireNow(key: string, options: ResolvedAcquire): Promise<LeaseHandle> {
    const tried = await tryAcquire(this.#coordinator, key, options);
    if ("held" in tried) {
      const { driver } = this.#coordinator;
      const holder = tried.held.holder ?? (await driver.inspect(key).catch(() => null))?.holders[0];
      throw new WaitTimeoutError(key, 0, holder, tried.held.position);
    }
    return tried.lease;
  }

  /** A repeat shares the lease of the first call. If a repeat requests the lock later, it has the ticket of its arrival. */
  async #acquireShared(key: string, options: ResolvedAcquire): Promise<JoinedLease> {
    const { driver, clock } = this.#coordinator;
    const ticket = driver.ticket(key);
    let wait: WaitReport | undefined;
    const onFollow = (): void => {
      wait = WaitReport.begin(this.#coordinator, key, options);
      wait?.queued("process", undefined);
    };
    const endWait = (): void => {
      wait?.ended();
      wait = undefined;
    };
    const shared = this.#sharedAttempts.acquire(
      attemptName(key, options),
      { ...options, onFollow },
      ({ waitMs }) => {
        endWait(); // this call requests the lock itself now
        return this.#acquireOnce(key, { ...options, waitMs, ticket });
      },
    );
    const lease = await shared
      .then((granted) => {
        if (granted) {
          wait?.granted(granted.fencingToken, "shared");
        }
        return granted;
      })
      .finally(endWait);
    if (!lease) {
      const inspecting = driver.inspect(key).catch(() => undefined);
      const state = await withTimeout(clock, maxInspectMs, inspecting);
      throw new WaitTimeoutError(key, options.waitMs, state?.holders[0]);
    }
    return lease;
  }

  async #tryShared(key: string, options: ResolvedAcquire): Promise<Tried<JoinedLease>> {
    const lease = await this.#sharedAttempts.try(attemptName(key, options), options, ({ signal }) =>
      this.#tryOnce(key, { ...options, signal }).then(leaseOrNull),
    );
    return lease ? { lease } : { holder: undefined };
  }

  /** @throws {LockError} `invalid-key`, `closed` or `self-deadlock`; or the reason of an aborted signal */
  #assertAllowed(key: string, options: ResolvedAcquire): void {
    this.#coordinator.checkKey(key);
    this.#coordinator.assertOpen(key);
    options.signal?.throwIfAborted();
    if (options.lockMode?.kind !== "semaphore") {
      this.#scope.assertNotWithin(key); // a semaphore may have free permits
    }
  }

  get #maxTtlMs(): number {
    return this.#coordinator.driver.capabilities.maxTtlMs;
  }
}

/** The name of an attempt. Another mode or other permits make another attempt. The limit may change between repeats. */
function attemptName(key: string, { lockMode, attemptId }: ResolvedAcquire): string {
  const mode = lockMode?.kind === "semaphore" ? lockMode.permits : lockMode?.mode;
  return JSON.stringify([key, lockMode?.kind, mode, attemptId]);
}
