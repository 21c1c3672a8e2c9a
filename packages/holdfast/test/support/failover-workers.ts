import { fork, type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { limitMs, type Sentinels } from "@holdfast/test-kit";

const program = fileURLToPath(new URL("failover-worker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
const timeoutMs = limitMs(90_000);

type WorkerOrders = {
  contend: { keys: readonly string[]; tasks: number };
  count: { wanted: number };
  stop: object;
  close: object;
};

/** A separate process with the built library and a client that uses sentinels. */
export class FailoverWorker {
  readonly #library: string;
  readonly #child: ChildProcess;
  readonly #emitter = new EventEmitter();

  private constructor(library: string, child: ChildProcess) {
    this.#library = library;
    this.#child = child;
    child.on("message", ({ event, message }: { event: string; message?: string }) => {
      if (event === "failed") {
        this.#emitter.emit("error", new Error(`worker ${library}: ${message}`));
      } else {
        this.#emitter.emit(event);
      }
    });
    this.#emitter.on("error", () => undefined); // a waiter for an event gets the error
  }

  static async start(
    library: string,
    { name, addresses }: Sentinels,
    record: string,
  ): Promise<FailoverWorker> {
    if (!existsSync(built)) {
      throw new Error("The library is not built: run `npm run build`");
    }
    const worker = new FailoverWorker(
      library,
      fork(program, [library, name, JSON.stringify(addresses), record], { silent: false }),
    );
    await worker.event("ready");
    return worker;
  }

  order<Order extends keyof WorkerOrders>(order: Order, details: WorkerOrders[Order]): void {
    this.#child.send({ order, ...details });
  }

  /** Rejects if the worker fails first. */
  async event(event: "ready" | "counted" | "done"): Promise<void> {
    try {
      await once(this.#emitter, event, { signal: AbortSignal.timeout(timeoutMs) });
    } catch (error) {
      throw new Error(`worker ${this.#library} did not say ${event}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, "exit");
      const timeout = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
      this.order("close", {});
      await exited;
      clearTimeout(timeout);
    }
  }
}

/** One hold, by the clock that all processes of this machine share. */
export interface HoldRecord {
  readonly key: string;
  readonly token: bigint;
  readonly who: number;
  readonly begun: number;
  /** When the holder stopped relying on its lease, ms. */
  readonly ended: number;
  readonly end: "released" | "lost";
}

/** Every hold of the key, in the order of their beginnings. */
export function readHolds(record: string): HoldRecord[] {
  const lines = readFileSync(record, "utf8").split("\n").slice(0, -1);
  const holds = lines.map((line) => {
    const held = JSON.parse(line) as Omit<HoldRecord, "token"> & { readonly token: string };
    return { ...held, token: BigInt(held.token) };
  });
  return holds.sort((a, b) => a.begun - b.begun);
}
