import { once } from "node:events";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import { initialStock, readOrders } from "./orders.ts";
import type { FromChild, Task } from "./processes.ts";
import { StockFile } from "./stock.ts";
import { countHandovers, assignedOrders, work, type WorkerContext } from "./worker.ts";

const progressEveryMs = 50;

// Ctrl-C reaches the whole process group; the parent decides what it means for us.
process.on("SIGINT", () => undefined);
// Without a parent nobody wants the work. A lock that we still hold ends by its TTL.
const abandon = (): never => process.exit(1);
process.once("disconnect", abandon);

const [task] = (await once(process, "message")) as [Task];
await serve(task);

/** One worker process: opens everything, says so, waits for the start, works, reports, and leaves when it is let go. */
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
  client.on("error", () => undefined); // A lost connection shows in the locks' own calls; ioredis only wants a listener.
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

/** A parent that has gone is noticed by `disconnect`; what it was not told matters no more. */
function sendMessage(message: FromChild): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
