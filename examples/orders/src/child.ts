import { once } from "node:events";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import { initialStock, readOrders } from "./orders.ts";
import type { FromChild, Task } from "./processes.ts";
import { StockFile } from "./stock.ts";
import { countHandovers, assignedOrders, work, type WorkerContext } from "./worker.ts";

const progressEveryMs = 50;

// Ctrl-C reaches the whole process group. This process ignores the signal, because the parent ends its workers.
process.on("SIGINT", () => undefined);
// Without a parent, the work has no purpose. Locks that this process still holds expire.
const abandon = (): never => process.exit(1);
process.once("disconnect", abandon);

const [task] = (await once(process, "message")) as [Task];
await serve(task);

/**
 * Runs one worker process: opens its files and locks, reports that it is ready, and waits for the start. Then it works, reports its
 * results, and ends when the parent disconnects.
 */
async function serve({ ordersFile, stockFile, index, workers, redisUrl }: Task): Promise<void> {
  const orders = await readOrders(ordersFile);
  await using stock = await StockFile.open(stockFile, initialStock(orders).keys());
  await using engine = redisUrl === null ? null : connect(redisUrl);
  using handovers = countHandovers();
  using progress = reportProgress();
  const mine = assignedOrders(orders, index, workers);
  const workplace: WorkerContext = { stock, locks: engine?.locks ?? null, onDone: progress.orderDone };

  sendMessage({ kind: "ready" });
  await once(process, "message");
  const tally = await work(mine, workplace);
  sendMessage({ kind: "finished", tally, handovers: handovers.count });

  process.off("disconnect", abandon);
  await once(process, "disconnect");
}

function connect(url: string): AsyncDisposable & { readonly locks: ReturnType<typeof createLocks> } {
  const client = new Redis(url);
  client.on("error", () => undefined); // ioredis needs a listener; lost connections also show in the calls of the locks
  const locks = createLocks(redis(client));
  return {
    locks,
    async [Symbol.asyncDispose]() {
      await locks.close();
      client.disconnect();
    },
  };
}

function reportProgress(): Disposable & { readonly orderDone: () => void } {
  let done = 0;
  const timer = setInterval(() => sendMessage({ kind: "progress", done }), progressEveryMs);
  return { orderDone: () => void done++, [Symbol.dispose]: () => clearInterval(timer) };
}

/** Ignores a failed send, because the event `disconnect` reports the end of the parent. */
function sendMessage(message: FromChild): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
