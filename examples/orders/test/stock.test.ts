import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { StockFile, reserveStock } from "../src/stock.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-stock-test-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("the stock file", () => {
  test("an order changes only the line of its article", async () => {
    const path = join(folder, "stock.txt");
    await using stock = await StockFile.create(path, new Map([["chisel", 7], ["saw", 5], ["vice", 9]])); // prettier-ignore
    expect(await reserveStock(stock, { order: 1, article: "saw", units: 3 })).toBe("accepted");
    expect(await reserveStock(stock, { order: 2, article: "saw", units: 3 })).toBe("refused");
    expect(await stock.read("saw")).toEqual({ remaining: 2, fence: 0n });
    expect(await readFile(path, "utf8")).toBe(
      [
        "chisel           0000000007 00000000000000000000\n",
        "saw              0000000002 00000000000000000000\n",
        "vice             0000000009 00000000000000000000\n",
      ].join(""),
    );
  });

  test("a holder with an older fencing token than the last writer's is rejected", async () => {
    await using stock = await StockFile.create(join(folder, "fenced.txt"), new Map([["saw", 5]]));
    const holder = (fencingToken: bigint) => ({ fencingToken, throwIfLost: () => undefined });
    await reserveStock(stock, { order: 1, article: "saw", units: 1 }, holder(8n));
    await expect(reserveStock(stock, { order: 2, article: "saw", units: 1 }, holder(7n))).rejects.toThrow(
      "Order 2 came with fencing token 7, after 8",
    );
    expect(await stock.read("saw")).toEqual({ remaining: 4, fence: 8n });
  });

  test("a holder that loses its lease between read and write writes nothing", async () => {
    await using stock = await StockFile.create(join(folder, "lost.txt"), new Map([["saw", 5]]));
    const throwIfLost = (): never => {
      throw new Error("lost");
    };
    const reserving = reserveStock(
      stock,
      { order: 1, article: "saw", units: 1 },
      { fencingToken: 1n, throwIfLost },
    );
    await expect(reserving).rejects.toThrow("lost");
    expect(await stock.read("saw")).toEqual({ remaining: 5, fence: 0n });
  });
});
