import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import { StoreDriver } from "../../../src/drivers/store/store-driver.ts";
import { Table } from "../../support/lease-table.ts";
import { grantOf } from "../../support/memory-requests.ts";
import { TableStore } from "../../support/table-store.ts";

test("a grant is stored for the largest difference of clocks longer than its lease is valid", async () => {
  const clock = manualClock();
  const table = new Table(clock);
  const settings = { clock, random: manualRandom(1), commandTimeoutMs: 2_000, graceMs: 5_000 };
  const [driver, other] = [1, 2].map(() => new StoreDriver(new TableStore(table), settings)) as [
    StoreDriver,
    StoreDriver,
  ];
  const none = { key: "k", lockMode: undefined, ticket: undefined, info: undefined };
  const request = { ...none, ttlMs: 4_000, deadline: null, fencingCount: 1 };
  const { validity } = await grantOf(driver.acquire(request));
  await clock.advance(4_100);
  expect(validity.until).toBeLessThan(clock.now());
  expect(await other.acquire(request).result).toMatchObject({ outcome: "held" });
  await clock.advance(5_000);
  expect(await other.acquire(request).result).toMatchObject({ outcome: "granted" });
});
