import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

import { runSeedBatch, type SeedResults } from "./seeds.ts";

/** Runs seeds in this process, or in several child processes. */
export interface WorkerPool extends AsyncDisposable {
  readonly size: number;
  /** @param worker its index, from 0. Each worker runs one batch at a time */
  run(worker: number, seeds: readonly number[]): Promise<SeedResults>;
}

export function openWorkerPool(size: number): WorkerPool {
  return size === 1
    ? { size, run: (_, seeds) => runSeedBatch(seeds), [Symbol.asyncDispose]: async () => {} }
    : new ProcessPool(size);
}

class ProcessPool implements WorkerPool {
  readonly #workers: readonly ChildProcess[];

  constructor(size: number) {
    const program = fileURLToPath(new URL("../worker.js", import.meta.url));
    this.#workers = Array.from({ length: size }, () => fork(program));
  }

  get size(): number {
    return this.#workers.length;
  }

  run(worker: number, seeds: readonly number[]): Promise<SeedResults> {
    const process = this.#workers[worker] as ChildProcess;
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => {
        reject(new Error(`The worker for the batch from seed ${seeds[0]} on exited with code ${code}`));
      };
      process.once("exit", ended);
      process.once("message", (results) => {
        process.off("exit", ended);
        resolve(results as SeedResults);
      });
      process.send(seeds);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#workers.map(async (worker) => {
        if (worker.connected) {
          const exited = new Promise((resolve) => worker.once("exit", resolve));
          worker.disconnect();
          await exited;
        }
      }),
    );
  }
}
