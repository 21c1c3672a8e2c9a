import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { performance } from "node:perf_hooks";

import type { Locks } from "holdfast";

import type { Order } from "./orders.ts";
import { takeStock, type StockFile } from "./stock.ts";

/** What a worker did. Plain JSON: it crosses a process boundary. */
export interface Tally {
  /** How many orders were handled; those that are not accepted were refused for want of stock. */
  handled: number;
  accepted: Order[];
  /** From asking for the lock to the start of the work, one for each order, ms. Empty without locks. */
  waitsMs: number[];
}

export interface Workplace {
  readonly stock: StockFile;
  /** null: without locks. */
  readonly locks: Locks | null;
  readonly signal?: AbortSignal;
  readonly onDone: () => void;
}

/** So many orders are under way in a worker at once, as in any server: callers of one process compete, too. */
const lanes = 8;
const waitMs = 60_000;

/** Works through `orders`, several at a time; ends early by `signal` and at the first error. */
export async function work(orders: readonly Order[], workplace: Workplace): Promise<Tally> {
  const tally: Tally = { handled: 0, accepted: [], waitsMs: [] };
  const rest = orders.values();
  await Promise.all(Array.from({ length: lanes }, () => workLane(rest, workplace, tally)));
  return tally;
}

/** The orders of worker `index`: dealt out one by one, so that every worker meets every article. */
export function share(orders: readonly Order[], index: number, workers: number): Order[] {
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
async function workLane(rest: Iterable<Order>, workplace: Workplace, tally: Tally): Promise<void> {
  for (const order of rest) {
    workplace.signal?.throwIfAborted();
    const outcome = await handle(order, workplace, tally);
    tally.handled++;
    if (outcome === "accepted") tally.accepted.push(order);
    workplace.onDone();
  }
}

async function handle(
  order: Order,
  { stock, locks, signal }: Workplace,
  tally: Tally,
): Promise<"accepted" | "refused"> {
  if (!locks) return takeStock(stock, order);
  const asked = performance.now();
  return locks.withLock(`article:${order.article}`, { waitMs, signal }, async (lease) => {
    tally.waitsMs.push(performance.now() - asked);
    return takeStock(stock, order, lease);
  });
}
