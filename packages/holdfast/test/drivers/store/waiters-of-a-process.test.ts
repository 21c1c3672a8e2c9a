import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { AcquireRequest } from "../../../src/driver.ts";
import { StoreDriver } from "../../../src/drivers/store/store-driver.ts";
import { Table } from "../../support/lease-table.ts";
import { grantOf } from "../../support/memory-requests.ts";
import { TableStore } from "../../support/table-store.ts";

const key = "order:555";

test("only the first waiter of a process polls at short intervals, and the next one does after the cancellation of the first", async () => {
  const clock = manualClock();
  const table = new Table(clock);
  const stores = [new TableStore(table), new TableStore(table)] as const;
  const [driver, other] = stores.map(
    (store, index) =>
      new StoreDriver(store, { clock, random: manualRandom(index + 1), commandTimeoutMs: 2_000 }),
  ) as [StoreDriver, StoreDriver];
  const request = (deadline: number | null): AcquireRequest => {
    const none = { lockMode: undefined, ticket: undefined, info: undefined };
    return { ...none, key, ttlMs: 30_000, deadline, fencingCount: 1 };
  };
  const polls: string[] = [];
  const { token } = await grantOf(other.acquire(request(null)));
  stores[0].intercept = async (name, execute) => {
    polls.push(name);
    return execute();
  };
  const [first, second] = [driver.acquire(request(60_000)), driver.acquire(request(60_000))];
  first.result.catch(() => undefined);
  await clock.advance(3_000);
  polls.length = 0;
  await clock.advance(200);
  const ofFirst = polls.length;
  expect(ofFirst).toBeGreaterThanOrEqual(1);
  expect(ofFirst).toBeLessThanOrEqual(5);
  first.cancel(new Error("no longer needed"));
  polls.length = 0;
  await clock.advance(200);
  expect(polls.filter((name) => name === "acquire").length).toBeGreaterThanOrEqual(2);
  await other.release(key, token, clock.now() + 30_000);
  await clock.advance(200);
  expect(await grantOf(second)).toMatchObject({ key });
  await Promise.all([driver.close(), other.close()]);
});
