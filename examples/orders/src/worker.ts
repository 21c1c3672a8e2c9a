import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { performance } from "node:perf_hooks";

import type { Locks } from "holdfast";

import type { Order } from "./orders.ts";
import { reserveStock, type StockFile } from "./stock.ts";

/** What a worker did. Plain JSON: it crosses a process boundary. */
export interface Tally {
  /** How many orders were handled; those that are not accepted were refused for want of stock. */
  handled: number;
  accepted: Order[];
  /** From asking for the lock to the start of the work, one for each order, ms. Empty without locks. */
  waitsMs: number[];
}

export interface WorkerContext {
  readonly stock: StockFile;
  /** null: without locks. */
  readonly locks: Locks | null;
  readonly signal?: AbortSignal;
  readonly onDone: () => void;
}

/** So many orders are under way in a worker at once, as in any server: callers of one process compete, too. */
const concurrentOrders = 8;
const waitMs = 60_000;

/** Works through `orders`, several at a time; ends early by `signal` and at the first error. */
export async function work(orders: readonly Order[], context: WorkerContext): Promise<Tally> {
  const tally: Tally = { handled: 0, accepted: [], waitsMs: [] };
  const rest = orders.values();
  await Promise.all(Array.from({ length: concurrentOrders }, () => runLoop(rest, context, tally)));
  return tally;
}

/** The orders of worker `index`: dealt out one by one, so that every worker meets every article. */
export function assignedOrders(orders: readonly Order[], index: number, workers: number): Order[] {
  return orders.filter((_, i) => i % workers === index);
}

/** Counts the leases that callers of this process passed on in memory, until disposed of. */
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

/** All lanes share the iterator: each takes the next order that none has taken. */
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
