import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { atExit } from "./at-exit.ts";
import { processOrders } from "./workers.ts";
import { openEngine } from "./engine.ts";
import type { Options } from "./options.ts";
import { initialStock, readOrders } from "./orders.ts";
import { showProgress, type Output } from "./progress.ts";
import { formatCount, isSound, summarize, table, verdict, type Summary } from "./report.ts";
import { StockFile } from "./stock.ts";

type Locking = "without locks" | "with locks";

/**
 * Processes all orders first without and then with locks, and prints the report. When the promise settles, all processes have ended
 * and all temporary files are deleted.
 * @returns `"unsound"` if units were oversold or lost in the run with locks
 */
export async function run(options: Options, out: Output, signal: AbortSignal): Promise<"sound" | "unsound"> {
  const orders = await readOrders(options.ordersFile);
  const initial = initialStock(orders);
  await using folder = await temporaryFolder();
  await using engine = await openEngine(options, folder.path, signal);
  out.write(`Engine: ${engine.description}.\n`);
  out.write(
    `${formatCount(orders.length)} orders for ${initial.size} articles; there is stock for three quarters of them.\n\n`,
  );

  const { ordersFile, workers } = options;
  const stopped = engine.lost ? AbortSignal.any([signal, engine.lost]) : signal;
  const one = async (locking: Locking): Promise<Summary> => {
    const stockFile = join(folder.path, `stock ${locking}.txt`);
    await using stock = await StockFile.create(stockFile, initial);
    using progress = showProgress(out, locking, orders.length);
    const job = { ordersFile, stockFile, workers, signal: stopped, onProgress: progress.done };
    const result = await processOrders(job, engine, locking);
    progress.done(orders.length);
    return summarize(result, initial, await levels(stock, initial.keys()));
  };
  const without = await one("without locks");
  const withLocks = await one("with locks");
  out.write(`\nOn ${engine.description}:\n\n${table(without, withLocks)}\n${verdict(without, withLocks)}\n`);
  return isSound(withLocks) ? "sound" : "unsound";
}

async function levels(stock: StockFile, articles: Iterable<string>): Promise<Map<string, number>> {
  const remaining = new Map<string, number>();
  for (const article of articles) remaining.set(article, (await stock.read(article)).remaining);
  return remaining;
}

async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "holdfast-orders-"));
  const cancelAtExit = atExit(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    async [Symbol.asyncDispose]() {
      await rm(path, { recursive: true, force: true });
      cancelAtExit();
    },
  };
}
