import { subscribe } from "node:diagnostics_channel";

import { isLockError, type Lease, type RenewTrace } from "holdfast";

import {
  HistoryFile,
  SharedClock,
  type LeaseRequest,
  type ClientRecord,
  type LatchRequest,
} from "../judge/history.ts";
import { recordVotes } from "./vote-log.ts";
import { RecordedLease, type LeaseRecorder } from "./recorded-lease.ts";

const stallCheckMs = 50;
const stallMs = 200;
const memorySampleMs = 3_000;

/** Records the events of a client process. */
export class Recorder implements LeaseRecorder {
  readonly clock: SharedClock;
  readonly leases: Set<RecordedLease> = new Set();
  readonly #history: HistoryFile<ClientRecord>;
  #requestCount = 0;
  #latchCalls = 0;

  /** @param ports the ports of the proxies in front of the servers */
  constructor(path: string, epoch: string, ports: readonly number[]) {
    this.clock = new SharedClock(BigInt(epoch));
    this.#history = new HistoryFile(path);
    this.#recordRejections();
    this.#recordRenewals();
    recordVotes(this, ports);
    this.#detectStalls();
    setInterval(() => {
      this.#sampleMemory();
    }, memorySampleMs).unref();
  }

  write(record: ClientRecord): void {
    this.#history.write(record);
  }

  async acquire(
    request: LeaseRequest,
    acquire: () => Promise<Lease | null>,
  ): Promise<RecordedLease | undefined> {
    const requestId = this.requested(request);
    try {
      const lease = await acquire();
      if (lease) {
        return new RecordedLease(this, requestId, request, lease);
      }
      this.refused(requestId, "held");
    } catch (error) {
      this.refused(requestId, this.codeOf(error));
    }
    return undefined;
  }

  /** Runs `withLock`, and records the result. */
  async withLock(
    request: LeaseRequest,
    run: (work: (lease: Lease) => Promise<true>) => Promise<true>,
    work: (recorded: RecordedLease) => Promise<RecordedLease | void>,
  ): Promise<void> {
    const requestId = this.requested(request);
    let recorded: RecordedLease | undefined;
    const done = run(async (lease) => {
      recorded = new RecordedLease(this, requestId, request, lease);
      recorded = (await work(recorded)) ?? recorded;
      recorded.releasing();
      return true;
    });
    await done.catch((error: unknown) => {
      if (!recorded) {
        this.refused(requestId, this.codeOf(error));
      }
    });
    await recorded?.released(done);
  }

  /**
   * Calls a latch, and records the remaining count or the error code.
   * @returns whether the call succeeded
   */
  async callLatch(request: LatchRequest, run: () => Promise<number>): Promise<boolean> {
    const call = (this.#latchCalls += 1);
    this.write({ e: "latch", at: this.clock.now(), call, ...request });
    try {
      const remaining = await run();
      this.write({ e: "latch-reply", at: this.clock.now(), call, remaining });
      return true;
    } catch (error) {
      this.write({ e: "latch-refused", at: this.clock.now(), call, code: this.codeOf(error) });
      return false;
    }
  }

  /** @returns the number of the request */
  requested(request: LeaseRequest): number {
    this.#requestCount += 1;
    this.write({ e: "requested", at: this.clock.now(), requestId: this.#requestCount, ...request });
    return this.#requestCount;
  }

  refused(requestId: number, code: string): void {
    this.write({ e: "refused", at: this.clock.now(), requestId, code });
  }

  codeOf(error: unknown): string {
    if (isLockError(error)) {
      return error.code;
    }
    return error instanceof DOMException && error.name === "AbortError"
      ? "aborted"
      : `strange: ${errorText(error)}`;
  }

  #recordRejections(): void {
    process.on("unhandledRejection", (error) => {
      this.#recordUnhandledError("unhandled rejection", error);
    });
    process.on("uncaughtException", (error) => {
      this.#recordUnhandledError("uncaught exception", error);
    });
    process.on("warning", (warning: Error & { code?: string }) => {
      if (warning.code !== "HOLDFAST_RESTART_GUARD_OFF") {
        this.#recordUnhandledError("warning", warning);
      }
    });
  }

  #recordUnhandledError(source: string, error: unknown): void {
    this.write({ e: "unhandled-error", at: this.clock.now(), error: `${source}: ${errorText(error)}` });
  }

  /** A renewal moves the validity of all leases of its run, after the event. */
  #recordRenewals(): void {
    subscribe("tracing:holdfast:renew:asyncEnd", (message) => {
      const { key } = message as RenewTrace;
      setImmediate(() => {
        for (const recorded of this.leases) {
          if (recorded.lease.keys.includes(key)) {
            recorded.recordValidity();
          }
        }
      });
    });
  }

  #detectStalls(): void {
    let last = this.clock.now();
    setInterval(() => {
      const now = this.clock.now();
      if (now - last > stallMs) {
        this.write({ e: "stalled", at: now, since: last });
      }
      last = now;
    }, stallCheckMs).unref();
  }

  #sampleMemory(): void {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    this.write({ e: "memory", at: this.clock.now(), bytes: heapUsed + external });
  }
}

function errorText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
