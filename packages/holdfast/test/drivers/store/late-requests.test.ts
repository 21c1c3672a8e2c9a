import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { AcquireRequest } from "../../../src/driver.ts";
import { EngineError } from "../../../src/errors.ts";
import { LateRequests, type StoreAcquire } from "../../../src/drivers/store/store-acquire.ts";
import { StoreDriver } from "../../../src/drivers/store/store-driver.ts";
import { Table } from "../../support/lease-table.ts";
import { grantOf } from "../../support/memory-requests.ts";
import { TableStore } from "../../support/table-store.ts";

const key = "order:555";
const commandTimeoutMs = 2_000;
const ttlMs = 30_000;

/** The engine has executed nothing. */
const refused = new EngineError("the engine starts", { outcome: "none", retryable: true });

function opened() {
  const clock = manualClock();
  const table = new Table(clock);
  const store = new TableStore(table);
  const driver = new StoreDriver(store, { clock, random: manualRandom(1), commandTimeoutMs });
  const other = new StoreDriver(new TableStore(table), { clock, random: manualRandom(2), commandTimeoutMs });
  return { clock, table, store, driver, other };
}

function request(changes: Partial<AcquireRequest> = {}): AcquireRequest {
  const none = { lockMode: undefined, ticket: undefined, info: undefined };
  return { ...none, key, ttlMs, deadline: null, fencingCount: 1, ...changes };
}

/** Holds the calls of a name until they are executed. */
function holdCalls(store: TableStore, held: string): { execute(): void; lose(): void }[] {
  const calls: { execute(): void; lose(): void }[] = [];
  store.intercept = (name, execute) =>
    name === held
      ? new Promise((resolve, reject) => {
          calls.push({ execute: () => resolve(execute()), lose: () => reject(new Error("connection lost")) });
        })
      : Promise.resolve(execute());
  return calls;
}

/** Executes each call of a name, and loses the first replies. */
function loseReplies(store: TableStore, lost: string, count: number): void {
  let left = count;
  store.intercept = async (name, execute) => {
    const reply = execute();
    if (name === lost && left > 0) {
      left -= 1;
      throw new Error("connection lost");
    }
    return reply;
  };
}

const holders = async ({ other }: { other: StoreDriver }): Promise<number> =>
  (await other.inspect(key)).holders.length;

test("a request that is executed after its repeat was granted does not end the grant", async () => {
  const { clock, store, driver, other } = opened();
  const calls = holdCalls(store, "acquire");
  const pending = driver.acquire(request({ deadline: 60_000 }));
  await clock.advance(commandTimeoutMs + 100);
  calls[1]?.execute();
  const { token, fencingToken } = await grantOf(pending);
  calls[0]?.execute();
  await clock.advance(10_000);
  expect((await other.inspect(key)).holders).toMatchObject([{ fencingToken }]);
  expect(await driver.release(key, token, clock.now() + ttlMs)).toBe(true);
});

test("the grant of a request that is executed after the release is removed", async () => {
  const { clock, store, driver, other } = opened();
  const calls = holdCalls(store, "acquire");
  const pending = driver.acquire(request({ deadline: 60_000 }));
  await clock.advance(commandTimeoutMs + 100);
  calls[1]?.execute();
  const { token } = await grantOf(pending);
  await driver.release(key, token, clock.now() + ttlMs);
  calls[0]?.execute();
  await clock.advance(1);
  expect(await holders({ other })).toBe(0);
});

test("the grant of a cancelled request is removed when its reply arrives", async () => {
  const { clock, store, driver, other } = opened();
  const calls = holdCalls(store, "acquire");
  const pending = driver.acquire(request({ deadline: 60_000 }));
  await clock.advance(1);
  pending.cancel(new Error("enough"));
  await expect(pending.result).rejects.toThrow("enough");
  calls[0]?.execute();
  await clock.advance(1);
  expect(await holders({ other })).toBe(0);
});

test("a try whose replies are lost rejects within its time limit, and its grant is removed", async () => {
  const { clock, store, driver, other } = opened();
  loseReplies(store, "acquire", Infinity);
  const pending = driver.acquire(request());
  const rejected = expect(pending.result).rejects.toMatchObject({
    code: "engine-unavailable",
    outcome: "unknown",
  });
  await clock.advance(commandTimeoutMs);
  await rejected;
  await clock.advance(1);
  expect(await holders({ other })).toBe(0);
});

test("a failed request that is executed later leaves no grant after one more command timeout", async () => {
  const { clock, store, table, driver, other } = opened();
  const late: (() => void)[] = [];
  store.intercept = async (name, execute) => {
    if (name === "acquire") {
      late.push(execute);
      throw new Error("connection lost");
    }
    return execute();
  };
  const pending = driver.acquire(request({ deadline: 1_000 }));
  const rejected = expect(pending.result).rejects.toMatchObject({ code: "engine-unavailable" });
  await clock.advance(1_500);
  await rejected;
  late[0]?.();
  expect(table.lock(key).rows.size).toBe(1);
  await clock.advance(commandTimeoutMs);
  expect(await holders({ other })).toBe(0);
});

test("a request without a reply that is executed after its wait ended as held leaves no grant", async () => {
  const { clock, store, driver, other } = opened();
  const holder = await grantOf(other.acquire(request()));
  const calls: (() => void)[] = [];
  store.intercept = (name, execute) => {
    if (name === "acquire" && calls.length === 0) {
      calls.push(execute);
      return new Promise(() => undefined); // its reply never comes
    }
    return Promise.resolve(execute());
  };
  const pending = driver.acquire(request({ deadline: commandTimeoutMs + 1_000 }));
  await clock.advance(commandTimeoutMs + 1_500);
  expect(await pending.result).toMatchObject({ outcome: "held" });
  await other.release(key, holder.token, holder.validity.until);
  calls[0]?.();
  expect(await holders({ other })).toBe(1);
  await clock.advance(commandTimeoutMs + 1);
  expect(await holders({ other })).toBe(0);
});

test("grants with a request without a reply are remembered no longer than they are valid", async () => {
  const clock = manualClock();
  const late = new LateRequests(clock);
  const added = (name: number, until: number): void => late.add({ token: `t${name}` } as StoreAcquire, until);
  for (let name = 0; name < 1_000; name += 1) {
    added(name, clock.now() + ttlMs);
    late.extended("t0", clock.now() + ttlMs);
    await clock.advance(1_000);
  }
  expect(late.size).toBeLessThan(130);
  late.lost("t0");
  const before = late.size;
  late.lost("t999");
  expect(late.size).toBe(before - 1);
});

test("a repeat after a lost reply finds its own grant", async () => {
  const { clock, store, driver, other } = opened();
  loseReplies(store, "acquire", 1);
  const pending = driver.acquire(request());
  await clock.advance(500);
  const { fencingToken } = await grantOf(pending);
  expect((await other.inspect(key)).holders).toMatchObject([{ fencingToken }]);
});

test("a release whose reply is lost reports that the grant was in force", async () => {
  const { clock, store, driver } = opened();
  const { token, validity } = await grantOf(driver.acquire(request()));
  loseReplies(store, "release", 1);
  const released = driver.release(key, token, validity.until);
  await clock.advance(500);
  expect(await released).toBe(true);
});

test("a release after a broken grant reports the break, although its first request was refused", async () => {
  const { clock, store, driver, other } = opened();
  const { token, validity, fencingToken } = await grantOf(driver.acquire(request()));
  await other.breakGrant(key, fencingToken, "test");
  let refusals = 1;
  store.intercept = (_, execute) => {
    refusals -= 1;
    return refusals >= 0 ? Promise.reject(refused) : Promise.resolve(execute());
  };
  const released = driver.release(key, token, validity.until);
  await clock.advance(1_000);
  expect(await released).toBe(false);
});

test("a release without a reply rejects within its time limit, and continues in the background", async () => {
  const { clock, store, driver, other } = opened();
  const { token, validity } = await grantOf(driver.acquire(request()));
  store.intercept = () => Promise.reject(new Error("connection lost"));
  const rejected = expect(driver.release(key, token, validity.until)).rejects.toMatchObject({
    code: "engine-unavailable",
  });
  await clock.advance(commandTimeoutMs);
  await rejected;
  await clock.advance(5_000);
  store.intercept = async (_, execute) => execute();
  await clock.advance(2_000);
  expect(await holders({ other })).toBe(0);
});

test("a grant whose validity ended before its reply is requested again, and is valid from then on", async () => {
  const { clock, store, driver } = opened();
  const calls = holdCalls(store, "acquire");
  const pending = driver.acquire(request({ ttlMs: 1_000, deadline: 60_000 }));
  await clock.advance(1_500);
  calls[0]?.execute();
  await clock.advance(1);
  expect(calls.length).toBe(2);
  calls[1]?.execute();
  const { validity } = await grantOf(pending);
  expect(validity.until).toBeGreaterThan(clock.now() + 900);
});

test("a waiter whose entry expired during an outage gets its old place again", async () => {
  const { clock, store, driver, other } = opened();
  const { token, validity } = await grantOf(other.acquire(request()));
  const first = driver.acquire(request({ deadline: 60_000 }));
  await clock.advance(100);
  const second = other.acquire(request({ deadline: 60_000 }));
  await clock.advance(100);
  store.intercept = () => Promise.reject(new Error("connection lost"));
  await clock.advance(8_000);
  expect((await other.inspect(key)).waiterCount).toBe(1);
  store.intercept = async (_, execute) => execute();
  await clock.advance(2_000);
  await other.release(key, token, validity.until);
  await clock.advance(2_000);
  const grant = await grantOf(first);
  await driver.release(key, grant.token, grant.validity.until);
  await clock.advance(2_000);
  expect((await grantOf(second)).fencingToken).toBeGreaterThan(grant.fencingToken);
});

test("the waiters of an unreachable engine reject at their deadlines with its failure", async () => {
  const { clock, store, driver } = opened();
  store.intercept = () => new Promise(() => undefined);
  const waits = [5_000, 6_000, 7_000].map((deadline) => driver.acquire(request({ deadline })));
  const rejected = waits.map(({ result }) =>
    expect(result).rejects.toMatchObject({ code: "engine-unavailable", retryable: true }),
  );
  await clock.advance(7_000 + 2 * commandTimeoutMs);
  await Promise.all(rejected);
});

test("the first reply after a failure is reported, once", async () => {
  const { clock, store, driver } = opened();
  let recoveries = 0;
  driver.listen({
    lost: () => undefined,
    notificationsInterrupted: () => undefined,
    engineRecovered: () => (recoveries += 1),
  });
  loseReplies(store, "inspect", 2);
  const inspected = driver.inspect(key);
  await clock.advance(1_000);
  await inspected;
  await driver.inspect(key);
  expect(recoveries).toBe(1);
});

test("close removes the grants of late replies", async () => {
  const { clock, store, driver, other } = opened();
  const calls = holdCalls(store, "acquire");
  const pending = driver.acquire(request());
  await clock.advance(1);
  const closed = driver.close();
  await expect(pending.result).rejects.toMatchObject({ code: "closed" });
  calls[0]?.execute();
  await closed;
  expect(await holders({ other })).toBe(0);
});

test("close ends within the command timeout if a reply is missing", async () => {
  const { clock, store, driver } = opened();
  holdCalls(store, "acquire");
  const pending = driver.acquire(request());
  pending.result.catch(() => undefined);
  await clock.advance(1);
  const closed = driver.close();
  await clock.advance(commandTimeoutMs);
  await closed;
  expect(clock.timers()).toBe(0);
});
