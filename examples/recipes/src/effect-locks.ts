import { Context, Effect, Layer } from "effect";
import { isLockError, type AcquireOptions, type Lease, type LockError, type Locks } from "holdfast";

/** Runs an effect under a lock. A loss of the lease interrupts the effect, and fails with a `LeaseLostError`. */
type WithLock = <A, E, R>(
  key: string,
  options: AcquireOptions,
  work: (lease: Lease) => Effect.Effect<A, E, R>,
) => Effect.Effect<A, E | LockError, R>;

/** The locks of an application. */
export class LocksService extends Context.Service<LocksService, { readonly withLock: WithLock }>()(
  "holdfast/Locks",
) {}

/** A layer that opens `Locks`, and closes them with its scope. */
export function locksLayer(open: () => Promise<Locks>): Layer.Layer<LocksService> {
  const locks = Effect.acquireRelease(Effect.promise(open), (opened) => Effect.promise(() => opened.close()));
  return Layer.effect(
    LocksService,
    Effect.map(locks, (opened) => ({ withLock: withLockOf(opened) })),
  );
}

function withLockOf(locks: Locks): WithLock {
  return (key, options, work) =>
    Effect.scoped(
      Effect.gen(function* () {
        const acquire = fromPromise((signal) => locks.acquire(key, { ...options, signal }));
        const lease = yield* Effect.acquireRelease(acquire, release, { interruptible: true });
        const value = yield* Effect.raceFirst(work(lease), loss(lease));
        yield* fromPromise(async () => lease.throwIfLost());
        return value;
      }),
    );
}

function release(lease: Lease): Effect.Effect<unknown> {
  return Effect.promise(() => lease.release().catch(() => false));
}

/** Fails at the loss of the lease. */
function loss({ signal }: Lease): Effect.Effect<never, LockError> {
  return Effect.callback((resume) => {
    const fail = (): void => resume(Effect.fail(signal.reason as LockError));
    if (signal.aborted) {
      fail();
      return undefined;
    }
    signal.addEventListener("abort", fail);
    return Effect.sync(() => signal.removeEventListener("abort", fail));
  });
}

/** An interruption aborts the signal. An error that is no `LockError` is a defect. */
function fromPromise<A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, LockError> {
  const attempt = Effect.tryPromise({ try: run, catch: (error) => error });
  return Effect.catch(attempt, (error) => (isLockError(error) ? Effect.fail(error) : Effect.die(error)));
}
