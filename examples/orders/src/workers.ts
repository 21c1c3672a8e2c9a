import { setMaxListeners } from "node:events";
import { performance } from "node:perf_hooks";

import { createLocks, type Driver } from "holdfast";

import type { Engine } from "./engine.ts";
import type { Job, JobResult } from "./job.ts";
import { initialStock, readOrders } from "./orders.ts";
import { runInProcesses } from "./processes.ts";
import { StockFile } from "./stock.ts";
import { countHandovers, assignedOrders, work, type Tally } from "./worker.ts";

/** Runs the job in one process for each worker, or in this process if the engine is in memory. */
export async function processOrders(
  job: Job,
  engine: Engine,
  locking: "without locks" | "with locks",
): Promise<JobResult> {
  if (engine.kind === "redis") return runInProcesses(job, locking === "with locks" ? engine.url : null);
  return runInThisProcess(job, locking === "with locks" ? engine.driver : null);
}

/** Each worker has its own `Locks` on the same driver, so the workers compete like processes on one server. */
async function runInThisProcess(job: Job, driver: Driver | null): Promise<JobResult> {
  const orders = await readOrders(job.ordersFile);
  await using stock = await StockFile.open(job.stockFile, initialStock(orders).keys());
  using handovers = countHandovers();
  setMaxListeners(0, job.signal); // every order in progress has a listener
  let done = 0;
  const onDone = (): void => job.onProgress(++done);
  const one = async (index: number): Promise<Tally> => {
    await using locks = driver && createLocks(driver);
    return await work(assignedOrders(orders, index, job.workers), {
      stock,
      locks,
      signal: job.signal,
      onDone,
    });
  };
  const started = performance.now();
  const tallies = await Promise.all(Array.from({ length: job.workers }, (_, index) => one(index)));
  return { tallies, handovers: handovers.count, seconds: (performance.now() - started) / 1_000 };
}
