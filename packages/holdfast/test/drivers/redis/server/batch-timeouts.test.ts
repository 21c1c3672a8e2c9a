import { isLockError } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { BatchFixture, nameOf, RecordingOperation, turn } from "./batch-fixture.ts";

let fixture: BatchFixture;

beforeEach(() => {
  fixture = new BatchFixture();
});

test("a call without a reply in time fails, and its late reply still reaches the operation", async () => {
  const [a] = fixture.perform("a");
  await turn();
  await fixture.clock.advance(1_999);
  expect(a?.failures).toEqual([]);
  await fixture.clock.advance(1);
  expect(a?.failures).toHaveLength(1);
  expect(isLockError(a?.failures[0], "engine-unavailable")).toBe(true);
  expect(a?.failures[0]).toMatchObject({ outcome: "unknown", retryable: true });
  fixture.calls[0]?.answer();
  await turn();
  expect([a?.value, a?.failures.length]).toEqual(["done a", 1]);
});

test("after a stall the reply of a quorum's node is read before the timeout, but only once if the process is always late", async () => {
  fixture.batcher = fixture.open(true);
  const [operation] = fixture.perform("a");
  await fixture.clock.advance(0);
  fixture.clock.block(2_100);
  await fixture.clock.advance(0);
  expect(operation?.failures).toEqual([]);
  fixture.clock.block(100);
  await fixture.clock.advance(0);
  expect(operation?.failures).toMatchObject([{ message: expect.stringContaining("2000 ms") as string }]);
});

test("after a timeout one probe is sent, and queued and new operations fail at once", async () => {
  const operations: RecordingOperation[] = [];
  for (let call = 0; call < 20; call += 1) {
    operations.push(...fixture.perform(nameOf(call)));
    await turn();
  }
  await fixture.clock.advance(2_000);
  operations.push(...fixture.perform("late", "later"));
  await turn();
  expect(fixture.calls).toHaveLength(8);
  expect(operations.every(({ failures }) => failures.length === 1)).toBe(true);
  expect(operations.at(-1)?.failures).toMatchObject([{ outcome: "none", retryable: true }]);
  expect(fixture.probes).toHaveLength(1);
  await fixture.clock.advance(1_999);
  fixture.perform("again");
  await turn();
  expect([fixture.probes.length, fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([
    1,
    true,
    0,
  ]);
});

test("a probe without a reply is repeated, ever more rarely, because the client may have dropped it", async () => {
  fixture.perform("a");
  await turn();
  await fixture.clock.advance(2_000);
  const waitFor = async (seconds: number): Promise<number> => {
    for (let second = 0; second < seconds; second += 1) {
      fixture.perform("again");
      await turn();
      await fixture.clock.advance(1_000);
    }
    return fixture.probes.length;
  };
  expect(await waitFor(10)).toBe(5);
  expect(await waitFor(590)).toBeLessThan(50);
});

test.each([
  ["the reply to a probe", () => fixture.probes[0]?.("pong")],
  ["a late reply", () => fixture.calls[0]?.answer()],
  ["a notification", () => fixture.responsiveness.messageReceived()],
  ["an error reply of the server", () => fixture.calls[0]?.fail(new Error("LOADING Redis is loading"))],
  [
    "a lasting error reply of the server",
    () => fixture.calls[0]?.fail(new Error("WRONGPASS invalid password")),
  ],
])(
  "%s ends the unresponsive state: the recovery is reported, and calls are sent again",
  async (_what, end) => {
    fixture.perform("a");
    await turn();
    await fixture.clock.advance(2_000);
    const [refused] = fixture.perform("b");
    await turn();
    expect(refused?.failures).toHaveLength(1);
    end();
    await turn();
    expect([fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([false, 1]);
    fixture.perform("c");
    await turn();
    expect(fixture.calls.map(({ operations }) => operations)).toEqual([["a"], ["c"]]);
  },
);

test("a late reply to the first of two calls ends no unresponsive state, because the client keeps the second call", async () => {
  fixture.perform("a");
  await turn();
  fixture.perform("b");
  await turn();
  await fixture.clock.advance(2_000);
  fixture.calls[0]?.answer();
  await turn();
  expect([fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([true, 0]);
  fixture.calls[1]?.answer();
  await turn();
  expect([fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([false, 1]);
});

test("a call that times out does not make a server unresponsive that has sent something since", async () => {
  const [early] = fixture.perform("early");
  await turn();
  await fixture.clock.advance(1_000);
  fixture.responsiveness.messageReceived();
  const [late] = fixture.perform("late");
  await turn();
  await fixture.clock.advance(1_000);
  expect([early?.failures.length, late?.failures.length, fixture.responsiveness.isUnresponsive]).toEqual([
    1,
    0,
    false,
  ]);
  await fixture.clock.advance(1_000);
  expect([late?.failures.length, fixture.responsiveness.isUnresponsive, fixture.probes.length]).toEqual([
    1,
    true,
    1,
  ]);
});

test("a call that its client drops ends the unresponsive state, but is no recovery", async () => {
  fixture.perform("a");
  await turn();
  await fixture.clock.advance(2_000);
  fixture.calls[0]?.fail(new Error("Connection is closed."));
  await turn();
  expect([fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([false, 0]);
});
