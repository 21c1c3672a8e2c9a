import { fork, type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  closeSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { limitMs } from "@holdfast/test-kit";
import type { AcquireOptions, LocksOptions } from "holdfast";

/** The kind of engine at the port. */
export type Topology = "server" | "cluster";

type WorkerOrders = {
  warmUp: object;
  contend: { key: string; tasks: number; record: string; acquire: AcquireOptions; holdMs: number };
  count: { wanted: number };
  stop: object;
  acquire: { key: string; options?: AcquireOptions };
  release: { key: string };
  takeTurn: { key: string; record: string; who: string };
  giveUp: { key: string; count: number; rounds: number };
  close: object;
};

/** An event of a worker. */
interface Events {
  ready: object;
  warm: object;
  queued: { key: string };
  counted: { wanted: number };
  done: { waits: number[]; losses: number };
  granted: { key: string; fencingToken: string };
  released: { key: string; released: boolean };
  /** The waits with a wrong rejection plus the remaining listeners, the heap growth in bytes, and the remaining timers. */
  gaveUp: { wrong: number; heapGrowth: number; timers: number };
}

const program = fileURLToPath(new URL("worker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
const timeoutMs = limitMs(60_000);

/** A separate process with the built library and its own client. */
export class Worker implements AsyncDisposable {
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

  static async start(
    name: string,
    port: number,
    options: LocksOptions = {},
    topology: Topology = "server",
  ): Promise<Worker> {
    if (!existsSync(built)) {
      throw new Error("The library is not built: run `npm run build`");
    }
    const args = [name, String(port), JSON.stringify(options), topology];
    const child = fork(program, args, { execArgv: ["--expose-gc"] });
    const worker = new Worker(name, child);
    await worker.event("ready");
    return worker;
  }

  order<Order extends keyof WorkerOrders>(order: Order, details: WorkerOrders[Order]): void {
    this.#child.send({ order, ...details });
  }

  /** The next event of that name. Rejects if the worker fails or ends first. */
  async event<Event extends keyof Events>(event: Event): Promise<Events[Event]> {
    const [details] = (await once(this.#emitter, event, { signal: AbortSignal.timeout(timeoutMs) })) as [
      Events[Event],
    ];
    return details;
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

  /** Resolves when that caller of the worker has had its turn. */
  async turn(worker: string): Promise<void> {
    await once(this.#emitter, `turn ${worker}`, { signal: AbortSignal.timeout(timeoutMs) });
  }

  /** Resolves when the process has ended. */
  async kill(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      return;
    }
    const exited = once(this.#child, "exit");
    const tooLong = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
    this.order("close", {});
    await exited;
    clearTimeout(tooLong);
  }
}

/** Starts workers, and waits until they are connected and know the server's time. */
export async function startWorkers(
  count: number,
  port: number,
  options?: LocksOptions,
  topology?: Topology,
): Promise<Worker[]> {
  const workers = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      Worker.start(String.fromCharCode(97 + i), port, options, topology),
    ),
  );
  for (const worker of workers) {
    await worker.request("warmUp", {}, "warm");
  }
  return workers;
}

/** One line of a record. */
export interface RecordEntry {
  readonly what: "begin" | "end";
  /** `<process>.<task>` */
  readonly who: string;
  readonly fencingToken: bigint;
}

/**
 * A file that every holder writes to, at the beginning and the end of its turn. Appending is atomic between processes,
 * so the lines stand in the order of the writes.
 */
export class Recording implements Disposable {
  readonly path: string;
  readonly #folder: string;

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), "holdfast-record-"));
    this.path = join(this.#folder, "turns");
    writeFileSync(this.path, "");
  }

  /** The present length of the file, as a position for `read`. */
  get end(): number {
    return statSync(this.path).size;
  }

  /** The whole lines that were written between two positions. */
  read(from = 0, to = this.end): RecordEntry[] {
    const bytes = Buffer.alloc(to - from);
    const file = openSync(this.path, "r");
    readSync(file, bytes, 0, bytes.length, from);
    closeSync(file);
    const lines = bytes
      .toString("latin1")
      .split("\n")
      .slice(from === 0 ? 0 : 1, -1);
    return lines.map((line) => {
      const [what, who, token] = line.split(" ") as ["begin" | "end", string, string];
      return { what, who, fencingToken: BigInt(token) };
    });
  }

  /** The tasks that began a turn, in order. */
  turns(from?: number, to?: number): string[] {
    return this.read(from, to).flatMap(({ what, who }) => (what === "begin" ? [who] : []));
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
