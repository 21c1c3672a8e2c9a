import type { Locks } from "holdfast";
import { optimistic, versionedRow } from "holdfast/optimistic";

import type { StockRow, StockTable } from "./stock-table.ts";

class SoldOutError extends Error {}

export interface Sales {
  readonly sold: number;
  /** How many tries were repeated because another writer had changed the row. */
  readonly conflicts: number;
  readonly seconds: number;
}

export interface Shop {
  readonly table: StockTable;
  readonly articles: number;
  readonly writers: number;
  readonly requests: number;
  /** Absent: without a lock. */
  readonly locks?: Locks;
}

/** The writers work through the requests. Each request takes one unit of a random article, or finds it sold out. */
export async function sell(shop: Shop): Promise<Sales> {
  const started = performance.now();
  let [sold, tries, begun] = [0, 0, 0];
  const writer = async (): Promise<void> => {
    while (begun < shop.requests) {
      begun += 1;
      const article = Math.floor(Math.random() * shop.articles);
      const isTaken = await takeUnit(shop, article, () => (tries += 1));
      sold += isTaken ? 1 : 0;
    }
  };
  await Promise.all(Array.from({ length: shop.writers }, writer));
  return { sold, conflicts: tries - shop.requests, seconds: (performance.now() - started) / 1_000 };
}

/** @returns false if the article is sold out */
async function takeUnit({ table, locks }: Shop, article: number, onTry: () => void): Promise<boolean> {
  const update = versionedRow<StockRow>(table.client, {
    table: "holdfast_stock",
    key: { article },
    change({ units }) {
      onTry();
      if (units === 0) throw new SoldOutError();
      return { units: units - 1 };
    },
  });
  const take = (): Promise<StockRow> => optimistic(update, { attempts: 1_000 });
  try {
    await (locks ? locks.withLock(`stock:${article}`, { waitMs: 60_000 }, take) : take());
    return true;
  } catch (error) {
    if (error instanceof SoldOutError) return false;
    throw error;
  }
}
