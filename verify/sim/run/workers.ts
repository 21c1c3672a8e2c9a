import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

import { runSeedBatch, type SeedResults } from "./seeds.ts";

/** Who plays seeds: this process, or several others beside it. */
export interface WorkerPool extends AsyncDisposable {
  readonly size: number;
  /** @param worker from 0; one job at a time each */
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
        reject(new Error(`A process that played seeds ${seeds[0]} and on ended with code ${code}`));
      };
      process.once("exit", ended);
      process.once("message", (played) => {
        process.off("exit", ended);
        resolve(played as SeedResults);
      });
      process.send(seeds);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#workers.map(async (member) => {
        if (member.connected) {
          const exited = new Promise((resolve) => member.once("exit", resolve));
          member.disconnect();
          await exited;
        }
      }),
    );
  }
}
