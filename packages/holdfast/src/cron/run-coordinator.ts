import type { OnceOptions } from "../kinds/once.ts";
import type { Lease } from "../lease/lease.ts";
import type { Locks } from "../locks.ts";
import { checkOnceOptions } from "./check-options.ts";

/** Options of `runCoordinator`: those of `Locks.once`, without the TTL, which is the `distributedLease` of the task. */
export interface RunCoordinatorOptions extends Omit<OnceOptions, "keepMs" | "ttlMs"> {
  /**
   * How long the key of a fire stays held, counted from the grant: 100 to 86 400 000 ms. Choose a time longer than the difference of
   * the clocks. It may be longer than the period of the schedule, because each fire has its own key.
   * @defaultValue 60 000
   */
  keepMs?: number | undefined;
}

/** The context that node-cron passes to a task. */
export interface CoordinatedRun {
  /** The time of the fire in the schedule. */
  readonly date: Date;
  readonly task?: { readonly name?: string | undefined } | undefined;
}

/** A coordinator for tasks of node-cron 4.4 or newer with `distributed: true`. */
export interface RunCoordinator {
  /**
   * Called by node-cron before a run.
   * @param key the name of the task, a colon, and the time of the fire
   * @param ttlMs the `distributedLease` of the task, 100 to 86 400 000 ms
   * @returns whether this process runs the fire
   * @throws {EngineError | QuorumError} the engine does not reply; node-cron then skips the fire
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /** Called by node-cron after a run. @throws {LeaseLostError} the lease was lost during the run */
  onComplete(key: string): Promise<void>;
  /**
   * The lease of a run, for its signal and its fencing token. A task of another process, as node-cron's background tasks are, has none.
   * @returns undefined before and after the run
   */
  leaseOf(run: CoordinatedRun): Lease | undefined;
}

interface Run {
  readonly lease: Lease;
  readonly finish: () => void;
}

/**
 * A coordinator with which node-cron runs each fire of a distributed task in at most one process.
 *
 * - The lease is renewed during the run. After the run the key stays held until `keepMs` after the grant, so that processes with later
 *   clocks skip the fire.
 *
 * - Each fire has its own key. A long run does not stop another process at the next fire; the option `noOverlap` of node-cron does that
 *   within one process.
 *
 * - At a loss the signal of `leaseOf(context)` aborts, and node-cron logs the `LeaseLostError` after the run.
 *
 * - A run that throws keeps its key, because node-cron does not report its error. No other process repeats the fire.
 *
 * - If the process crashes, another process with a later clock may run the same fire after the TTL, unless `ifCrashed` is `"keep"`.
 * @throws {TypeError | RangeError} invalid option
 */
export function runCoordinator(locks: Locks, options: RunCoordinatorOptions = {}): RunCoordinator {
  const { keepMs = 60_000, ...others } = options;
  const once = checkOnceOptions(locks, "task", { keepMs, ...others }, []);
  if ("ttlMs" in others) {
    throw new TypeError("Expected no `ttlMs`, because node-cron passes the `distributedLease` of the task");
  }
  const runs = new Map<string, Run & { readonly ended: Promise<unknown> }>();

  return {
    shouldRun: async (key, ttlMs) => {
      const { promise: isGranted, resolve, reject } = deferred<boolean>();
      const ended = locks.once(key, { ...once, ttlMs }, (lease) => {
        const { promise: finished, resolve: finish } = deferred<void>();
        runs.set(key, { lease, finish, ended });
        resolve(true);
        return finished;
      });
      ended.then(({ ran }) => resolve(ran), reject);
      return isGranted;
    },
    onComplete: async (key) => {
      const run = runs.get(key);
      runs.delete(key);
      run?.finish();
      await run?.ended;
    },
    leaseOf: ({ date, task }) => runs.get(`${task?.name}:${date.toISOString()}`)?.lease,
  };
}

function deferred<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
} {
  let settle!: { resolve: (value: T) => void; reject: (error: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle };
}
