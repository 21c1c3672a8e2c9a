import { Worker } from "node:worker_threads";

// oxlint-disable-next-line no-restricted-imports -- the thread opens a driver of its own
import type { ConnectOptions } from "../drivers/connect/index.ts";
import type { Driver } from "../driver.ts";
import type { BackedLease, RenewalBackup, RenewalBackupStarter } from "../lease/watchdog.ts";
import { checkInteger, checkObject, checkOptionNames, checkText, invalidValue } from "../option-checks.ts";
import { asMicrotask, systemClock, type Timer } from "../runtime/clock.ts";
import { withTimeout } from "../runtime/timeout.ts";
import type { ThreadData, ThreadLease, ThreadMessage, ThreadReport } from "./messages.ts";
import { monotonicLeadMs, SharedValidity } from "./shared-validity.ts";
import { Slots, type PlacedSlot } from "./slots.ts";

/** Options of {@link watchdogThread}. */
export interface WatchdogThreadOptions {
  /**
   * How long the event loop may be blocked, ms, 100 to 86 400 000. Afterwards the thread renews no more, so that a process that hangs
   * loses its leases.
   * @defaultValue 60 000
   */
  maxBlockedMs?: number | undefined;
  /** Options of `connect` for the connection of the thread, such as `password`. They are copied, so they must be plain values. */
  connection?: Omit<ConnectOptions, "clock" | "random"> | undefined;
}

/** The program of the thread. The path is the same from the sources, the ES modules and the CommonJS bundle. */
const program = new URL("../../dist/watchdog-thread/worker.js", import.meta.url);
const closeTimeoutMs = 2_000;
/** New leases wait for the thread for this long at most, ms. */
const startTimeoutMs = 5_000;
/** The pause before a failed thread starts again, ms. It doubles with each failure. */
const restartMs = { first: 1_000, longest: 60_000 };

/**
 * Renews leases from a worker thread with a connection of its own, while the event loop of this thread is blocked. For the option
 * `watchdog` of `createLocks`. The thread does not keep the process alive, and ends with it.
 *
 * The thread renews a lease whose TTL has half passed without a renewal. `lease.remainingMs()` and `throwIfLost()` count its renewals
 * at once, also in the same turn of the event loop.
 *
 * New leases wait until the thread has started, for 5 s at most. A thread that fails, is late, or does not find the first lease at its
 * engine is reported by a process warning with the code `HOLDFAST_WATCHDOG_THREAD`, and ends no lease.
 * @param url the engine of the locks, for `holdfast/connect`, with the same options of the driver, such as `prefix`
 * @throws {TypeError | RangeError} for invalid options, and for `memory:`, which exists in one thread only
 * @example
 * ```ts
 * const locks = createLocks(redis(client), { watchdog: watchdogThread(process.env.REDIS_URL) });
 * ```
 */
export function watchdogThread(url: string, options: WatchdogThreadOptions = {}): RenewalBackupStarter {
  checkText("url", url, 4096);
  checkOptionNames(options, ["maxBlockedMs", "connection"]);
  const { maxBlockedMs = 60_000, connection = {} } = options;
  checkObject("connection", connection);
  checkInteger("maxBlockedMs", maxBlockedMs, 100, 86_400_000);
  if (url.startsWith("memory:")) {
    throw invalidValue("url", "the URL of a server", url);
  }
  return {
    start: ({ clock }: Driver) => {
      if (clock !== systemClock) {
        throw new TypeError(
          "Expected a driver with the clock of the system for `watchdogThread`, got an injected clock",
        );
      }
      return new WatchdogThread({ url, connection, maxBlockedMs, heartbeat: new SharedArrayBuffer(8) });
    },
  };
}

class WatchdogThread implements RenewalBackup {
  starting: Promise<void> | undefined;
  readonly #data: ThreadData;
  readonly #beat: BigInt64Array;
  readonly #leases = new Map<BackedLease, SharedLease>();
  readonly #slots = new Slots((block) => this.#send({ type: "block", block }));
  readonly #announced: BackedLease[] = [];
  #worker: Worker | undefined;
  #restartAt = 0;
  #restartMs = restartMs.first;
  #beatTimer: Timer;
  #isClosed = false;
  #isMistaken = false;
  #endStart!: (isReady: boolean) => void;

  constructor(data: ThreadData) {
    this.#data = data;
    this.#beat = new BigInt64Array(data.heartbeat);
    const started = new Promise<boolean>((resolve) => (this.#endStart = resolve));
    this.starting = withTimeout(systemClock, startTimeoutMs, started).then((isReady) => {
      this.starting = undefined;
      if (isReady === undefined) {
        warn(
          `has not started within ${startTimeoutMs} ms. Until it has started, a blocked event loop loses leases`,
        );
      }
    });
    this.#start();
  }

  add(lease: BackedLease): void {
    if (this.#isClosed || this.#leases.has(lease)) {
      return;
    }
    this.#start();
    const { grant, endsAt } = lease;
    const validity =
      grant.validity instanceof SharedValidity ? grant.validity : new SharedValidity(grant.validity);
    grant.validity = validity;
    const placed = this.#slots.take();
    validity.attach(placed.slot, endsAt);
    this.#leases.set(lease, { ...placed, validity });
    this.#beatNow();
    this.#announce(lease);
  }

  update(lease: BackedLease): void {
    this.#leases.get(lease)?.slot.endAt(lease.endsAt + monotonicLeadMs);
  }

  remove(lease: BackedLease): void {
    const shared = this.#leases.get(lease);
    if (shared && this.#leases.delete(lease)) {
      shared.validity.detach(shared.slot);
      shared.free();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endStart(false);
    systemClock.clearTimer(this.#beatTimer);
    for (const lease of Array.from(this.#leases.keys())) {
      this.remove(lease);
    }
    const worker = this.#worker;
    if (worker) {
      const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
      this.#send({ type: "close" });
      await withTimeout(systemClock, closeTimeoutMs, ended);
      await worker.terminate();
    }
  }

  /** Starts the thread, and also gives it the leases of a thread that has failed. */
  #start(): void {
    if (this.#worker || systemClock.now() < this.#restartAt) {
      return;
    }
    this.#beatNow();
    const worker = new Worker(program, { workerData: this.#data, execArgv: [] });
    worker.unref();
    this.#worker = worker;
    worker.on("message", (report: ThreadReport) => {
      if (report.type === "ready") {
        this.#endStart(true);
      } else {
        this.#mistaken(report.key);
      }
    });
    worker.once("error", (error) => {
      this.#failed(worker, error);
    });
    worker.once("exit", () => {
      this.#failed(worker, new Error("the thread has ended"));
    });
    for (const block of this.#slots.buffers) {
      this.#send({ type: "block", block });
    }
    for (const lease of this.#leases.keys()) {
      this.#announce(lease);
    }
  }

  #failed(worker: Worker, error: Error): void {
    if (this.#worker !== worker || this.#isClosed) {
      return;
    }
    this.#worker = undefined;
    this.#restartAt = systemClock.now() + this.#restartMs;
    this.#restartMs = Math.min(2 * this.#restartMs, restartMs.longest);
    this.#endStart(false);
    warn(`has failed: ${error.message}. Until it has started again, a blocked event loop loses leases`);
  }

  #mistaken(key: string): void {
    if (!this.#isMistaken) {
      this.#isMistaken = true;
      warn(
        `does not find the lease of ${JSON.stringify(key)}, so a blocked event loop loses leases. ` +
          "Its url and `connection` need the server, database and prefix of the driver",
      );
    }
  }

  /** Sends all new leases of a turn in one message, before the caller of an acquire continues and may block the event loop. */
  #announce(lease: BackedLease): void {
    if (this.#announced.push(lease) === 1) {
      asMicrotask(() => {
        const leases = this.#announced.splice(0).flatMap((one) => {
          const shared = this.#leases.get(one);
          return shared ? [threadLease(one, shared)] : [];
        });
        if (leases.length > 0) {
          this.#send({ type: "add", leases });
        }
      });
    }
  }

  #send(message: ThreadMessage): void {
    this.#worker?.postMessage(message);
  }

  #beatNow(): void {
    Atomics.store(this.#beat, 0, BigInt(Math.floor(systemClock.now() + monotonicLeadMs)));
    this.#beatTimer ??= systemClock.setTimer(
      () => {
        this.#beatTimer = undefined;
        if (this.#leases.size > 0) {
          this.#start();
          this.#beatNow();
        }
      },
      Math.min(500, this.#data.maxBlockedMs / 4),
    );
  }
}

/** @param state what the thread has done, or has not done */
function warn(state: string): void {
  process.emitWarning(`The watchdog thread ${state}`, { code: "HOLDFAST_WATCHDOG_THREAD" });
}

/** A lease with its slot and validity. */
interface SharedLease extends PlacedSlot {
  readonly validity: SharedValidity;
  readonly free: () => void;
}

function threadLease(
  { key, grant: { token }, fencingToken, ttlMs }: BackedLease,
  { block, index, lease }: PlacedSlot,
): ThreadLease {
  return { block, index, lease, key, token, fencingToken, ttlMs };
}
