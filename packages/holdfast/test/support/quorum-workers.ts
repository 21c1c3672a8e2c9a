import { fork, type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { limitMs } from "@holdfast/test-kit";
import type { AcquireOptions, LocksOptions, SerializedLease } from "holdfast";
import type { RedlockOptions } from "holdfast/redis";

import { onCleanup, type Endpoint } from "./quorum-servers.ts";

type WorkerOrders = {
  warmUp: { count: number };
  takeTurns: {
    key: string;
    record: string;
    callers: number;
    acquire: AcquireOptions;
    holdMs: number;
    at: number;
  };
  tryAll: { key: string; callers: number; acquire: AcquireOptions; at: number };
  contend: {
    kind: "read-write" | "all" | "reentrant";
    keys: readonly string[];
    tasks: number;
    rounds: number;
    record: string;
  };
  acquire: { key: string; options: AcquireOptions };
  read: { key: string; options: AcquireOptions };
  all: { keys: readonly string[]; options: AcquireOptions };
  campaign: { key: string; options: AcquireOptions };
  resign: { key: string };
  release: { key: string };
  judge: { key: string };
  transfer: { key: string };
  adopt: { serialized: SerializedLease };
  close: object;
};

/** An event of a worker. Its times are those of `sharedNow`. */
interface Events {
  ready: object;
  warm: object;
  done: { waitedMs: number[]; lost: number };
  tried: { won: string[] };
  contended: object;
  granted: { key: string; fencingToken: string; at: number; validUntil: number };
  released: { key: string; released: boolean };
  resigned: { key: string; resigned: boolean };
  judged: { key: string; validUntil: number; isLost: boolean };
  transferred: { serialized: SerializedLease };
}

export interface QuorumWorkerOptions {
  readonly name: string;
  /** The nodes of each driver of the worker. */
  readonly drivers: readonly (readonly Endpoint[])[];
  readonly redlock?: RedlockOptions;
  readonly locks?: LocksOptions;
}

const program = fileURLToPath(new URL("quorum-worker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
const timeoutMs = limitMs(25_000);

/** Milliseconds of a clock that all processes of the machine share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A separate process with drivers of a quorum. The process ends after the test. */
export class QuorumWorker {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #emitter = new EventEmitter();

  private constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.#child = child;
    child.on("message", ({ event, ...rest }: { event: string; message?: string }) => {
      if (event === "failed") {
        this.#emitter.emit("error", new Error(`worker ${name}: ${rest.message}`));
      } else {
        this.#emitter.emit(event, rest);
      }
    });
    child.on("exit", (code, signal) => {
      this.#emitter.emit("error", new Error(`worker ${name} ended: ${code ?? signal}`));
    });
    this.#emitter.on("error", () => undefined); // a waiter for an event gets the error
  }

  static async start({ name, drivers, ...options }: QuorumWorkerOptions): Promise<QuorumWorker> {
    if (!existsSync(built)) {
      throw new Error("The library is not built: run `npm run build`");
    }
    const ports = drivers.map((endpoints) => endpoints.map(({ port }) => port));
    const child = fork(program, [JSON.stringify({ name, drivers: ports, ...options })]);
    const worker = new QuorumWorker(name, child);
    onCleanup(() => worker.#end());
    await worker.event("ready");
    return worker;
  }

  /** The next event of that name. Rejects if the worker fails or ends first. */
  async event<Event extends keyof Events>(event: Event): Promise<Events[Event]> {
    try {
      const [details] = (await once(this.#emitter, event, {
        signal: AbortSignal.timeout(timeoutMs),
      })) as [Events[Event]];
      return details;
    } catch (error) {
      throw new Error(`worker ${this.name} did not say "${event}"`, { cause: error });
    }
  }

  order<Order extends keyof WorkerOrders>(order: Order, details: WorkerOrders[Order]): void {
    this.#child.send({ order, ...details });
  }

  /** Sends an order, and waits for its event. */
  async request<Order extends keyof WorkerOrders, Event extends keyof Events>(
    order: Order,
    details: WorkerOrders[Order],
    event: Event,
  ): Promise<Events[Event]> {
    const answer = this.event(event);
    this.order(order, details);
    return answer;
  }

  /** SIGSTOP: the process keeps its connections and does nothing. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** Resolves when the process has ended. */
  async kill(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async #end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      return;
    }
    const exited = once(this.#child, "exit");
    const timeout = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
    this.thaw();
    if (this.#child.connected) {
      this.order("close", {});
    }
    await exited;
    clearTimeout(timeout);
  }
}
