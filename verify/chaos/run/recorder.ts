import { subscribe } from "node:diagnostics_channel";

import { isLockError, type Lease, type RenewTrace } from "holdfast";

import {
  HistoryFile,
  SharedClock,
  type Asked,
  type ClientRecord,
  type LatchAsked,
} from "../judge/history.ts";
import { hearVotes } from "./vote-log.ts";
import { RecordedLease } from "./recorded-lease.ts";

const tickMs = 50;
const stallMs = 200;
const sampleMs = 3_000;

/** Writes down what happens in a client process. */
export class Recorder {
  readonly clock: SharedClock;
  /** Those that are in somebody's hand. */
  readonly leases: Set<RecordedLease> = new Set();
  readonly #history: HistoryFile<ClientRecord>;
  #asks = 0;
  #latchCalls = 0;

  /** @param ports by which the servers are reached */
  constructor(path: string, epoch: string, ports: readonly number[]) {
    this.clock = new SharedClock(BigInt(epoch));
    this.#history = new HistoryFile(path);
    this.#hearRejections();
    this.#hearRenewals();
    hearVotes(this, ports);
    this.#noticeStalls();
    setInterval(() => {
      this.#sampleMemory();
    }, sampleMs).unref();
  }

  write(record: ClientRecord): void {
    this.#history.write(record);
  }

  /**
   * Asks, and writes down how it ended.
   * @returns undefined where it was refused, or is held
   */
  async ask(about: Asked, ask: () => Promise<Lease | null>): Promise<RecordedLease | undefined> {
    const number = this.asked(about);
    try {
      const lease = await ask();
      if (lease) {
        return new RecordedLease(this, number, about, lease);
      }
      this.refused(number, "held");
    } catch (error) {
      this.refused(number, this.codeOf(error));
    }
    return undefined;
  }

  /** Works by a `withLock`, and writes down how it ended. */
  async work(
    about: Asked,
    run: (work: (lease: Lease) => Promise<true>) => Promise<true>,
    work: (recorded: RecordedLease) => Promise<RecordedLease | void>,
  ): Promise<void> {
    const ask = this.asked(about);
    let recorded: RecordedLease | undefined;
    const done = run(async (lease) => {
      recorded = new RecordedLease(this, ask, about, lease);
      recorded = (await work(recorded)) ?? recorded;
      recorded.releasing();
      return true;
    });
    await done.catch((error: unknown) => {
      if (!recorded) {
        this.refused(ask, this.codeOf(error));
      }
    });
    await recorded?.released(done);
  }

  /**
   * Calls a latch, and writes down what is left then, or how it was refused.
   * @returns whether it was answered
   */
  async callLatch(about: LatchAsked, run: () => Promise<number>): Promise<boolean> {
    const call = (this.#latchCalls += 1);
    this.write({ e: "latch", at: this.clock.now(), call, ...about });
    try {
      const left = await run();
      this.write({ e: "latched", at: this.clock.now(), call, left });
      return true;
    } catch (error) {
      this.write({ e: "unlatched", at: this.clock.now(), call, code: this.codeOf(error) });
      return false;
    }
  }

  /** @returns the number of the ask */
  asked(about: Asked): number {
    this.#asks += 1;
    this.write({ e: "asked", at: this.clock.now(), ask: this.#asks, ...about });
    return this.#asks;
  }

  refused(ask: number, code: string): void {
    this.write({ e: "refused", at: this.clock.now(), ask, code });
  }

  /** What a call was rejected with. Anything that is neither the library's nor our own abort is told in full. */
  codeOf(error: unknown): string {
    if (isLockError(error)) {
      return error.code;
    }
    return error instanceof DOMException && error.name === "AbortError"
      ? "aborted"
      : `strange: ${told(error)}`;
  }

  #hearRejections(): void {
    process.on("unhandledRejection", (error) => {
      this.#unheard("unhandled rejection", error);
    });
    process.on("uncaughtException", (error) => {
      this.#unheard("uncaught exception", error);
    });
    process.on("warning", (warning: Error & { code?: string }) => {
      if (warning.code !== "HOLDFAST_RESTART_GUARD_OFF") {
        this.#unheard("warning", warning);
      }
    });
  }

  #unheard(what: string, error: unknown): void {
    this.write({ e: "unheard", at: this.clock.now(), error: `${what}: ${told(error)}` });
  }

  /** A renewal moves the validity of all leases of its run, after it was told. */
  #hearRenewals(): void {
    subscribe("tracing:holdfast:renew:asyncEnd", (message) => {
      const { key } = message as RenewTrace;
      setImmediate(() => {
        for (const recorded of this.leases) {
          if (recorded.lease.keys.includes(key)) {
            recorded.review();
          }
        }
      });
    });
  }

  #noticeStalls(): void {
    let last = this.clock.now();
    setInterval(() => {
      const now = this.clock.now();
      if (now - last > stallMs) {
        this.write({ e: "stalled", at: now, since: last });
      }
      last = now;
    }, tickMs).unref();
  }

  #sampleMemory(): void {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    this.write({ e: "memory", at: this.clock.now(), bytes: heapUsed + external });
  }
}

function told(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
