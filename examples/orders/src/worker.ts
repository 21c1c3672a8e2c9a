import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { performance } from "node:perf_hooks";

import type { Locks } from "holdfast";

import type { Order } from "./orders.ts";
import { reserveStock, type StockFile } from "./stock.ts";

/** The results of a worker, as plain JSON, because they are sent to another process. */
export interface Tally {
  /** The number of processed orders. Orders that are not accepted were refused, because the stock did not suffice. */
  handled: number;
  accepted: Order[];
  /** For each order, the ms from the request for the lock to the start of the work. Empty without locks. */
  waitsMs: number[];
}

export interface WorkerContext {
  readonly stock: StockFile;
  /** null: without locks. */
  readonly locks: Locks | null;
  readonly signal?: AbortSignal;
  readonly onDone: () => void;
}

/** The number of concurrent orders in a worker, as in a server. So callers of one process compete too. */
const concurrentOrders = 8;
const waitMs = 60_000;

/** Processes `orders`, several at a time. It stops early at the first error, or when `signal` aborts. */
export async function work(orders: readonly Order[], context: WorkerContext): Promise<Tally> {
  const tally: Tally = { handled: 0, accepted: [], waitsMs: [] };
  const rest = orders.values();
  await Promise.all(Array.from({ length: concurrentOrders }, () => runLoop(rest, context, tally)));
  return tally;
}

/** The orders of worker `index`. Orders are assigned in turn, so that every worker processes every article. */
export function assignedOrders(orders: readonly Order[], index: number, workers: number): Order[] {
  return orders.filter((_, i) => i % workers === index);
}

/** Counts the leases that callers of this process hand over in memory, until it is disposed. */
export function countHandovers(): Disposable & { readonly count: number } {
  let count = 0;
  const onHandover = (): void => void count++;
  subscribe("holdfast:handover", onHandover);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => void unsubscribe("holdfast:handover", onHandover),
  };
}

/** Processes orders until none remain. All loops share the iterator, so each order is processed once. */
async function runLoop(rest: Iterable<Order>, context: WorkerContext, tally: Tally): Promise<void> {
  for (const order of rest) {
    context.signal?.throwIfAborted();
    const outcome = await handle(order, context, tally);
    tally.handled++;
    if (outcome === "accepted") tally.accepted.push(order);
    context.onDone();
  }
}

async function handle(
  order: Order,
  { stock, locks, signal }: WorkerContext,
  tally: Tally,
): Promise<"accepted" | "refused"> {
  if (!locks) return reserveStock(stock, order);
  const requestedAt = performance.now();
  return locks.withLock(`article:${order.article}`, { waitMs, signal }, async (lease) => {
    tally.waitsMs.push(performance.now() - requestedAt);
    return reserveStock(stock, order, lease);
  });
}
