import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import { StoreDriver } from "../../../src/drivers/store/store-driver.ts";
import { lockState, type LockState } from "../../../src/lock-state.ts";
import { Table } from "../../support/lease-table.ts";
import { TableStore } from "../../support/table-store.ts";

test("a watch by polls reports no event while only times change", async () => {
  const clock = manualClock();
  const store = new TableStore(new Table(clock));
  const driver = new StoreDriver(store, { clock, random: manualRandom(1), commandTimeoutMs: 2_000 });
  let polls = 0;
  let owner = "first";
  store.inspect = async (key: string): Promise<LockState> => {
    polls += 1;
    const heldMs = clock.now();
    return lockState({
      key,
      kind: "mutex",
      limit: 1,
      holders: [{ owner: "holder", remainingMs: 30_000 - heldMs, since: 1_000, heldMs }],
      waiters: [{ owner, position: 0, since: 2_000, waitedMs: heldMs }],
      waiterCount: 1,
      remainingMs: 30_000 - heldMs,
      fencingToken: null,
      nodes: [],
    });
  };
  const abort = new AbortController();
  const events = driver.watch("order:555", abort.signal)[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: "snapshot" });
  const change = events.next();
  await clock.advance(3_000);
  expect(polls).toBeGreaterThan(4);
  owner = "second";
  await clock.advance(1_000);
  expect((await change).value).toMatchObject({ type: "changed", state: { waiters: [{ owner: "second" }] } });
  abort.abort();
  await driver.close();
});
