import { setTimeout as pause } from "node:timers/promises";

import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";

import { parseOptions } from "./options.ts";
import { readOrders, type Order } from "./orders.ts";

// Generates traffic for a lock service: workers process the orders again and again, each order under the lock of its article.
//
//   node examples/orders/dist/traffic.js http://127.0.0.1:7420

const workerCount = 8;
const workMs = 150;

const [url] = process.argv.slice(2);
const options = parseOptions([]);
if (url === undefined || options === "help") {
  process.stderr.write("Expected the URL of a lock service or of an engine, got none\n");
  process.exit(2);
}

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

const locks = createLocks(await connect(url));
const orders = await readOrders(options.ordersFile);
await Promise.all(Array.from({ length: workerCount }, (_, worker) => work(`worker ${worker + 1}`, worker)));
await locks.close();

async function work(owner: string, worker: number): Promise<void> {
  for (let turn = worker; !stop.signal.aborted; turn += workerCount) {
    const order = orders[turn % orders.length] as Order;
    try {
      const { signal } = stop;
      const acquireOptions = { owner, reason: `order ${order.order}`, ttlMs: 5_000, signal };
      await locks.withLock(`stock:${order.article}`, acquireOptions, (lease) =>
        pause(workMs * order.units, undefined, { signal: AbortSignal.any([lease.signal, signal]) }),
      );
    } catch (error) {
      if (!stop.signal.aborted) {
        process.stderr.write(`${owner}: ${error instanceof Error ? error.message : String(error)}\n`);
        await pause(1_000);
      }
    }
  }
}
