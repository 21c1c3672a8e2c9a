import { isLockError } from "holdfast";
import { beforeEach, expect, test } from "vitest";

import { BatchFixture, nameOf, RecordingOperation, turn } from "./batch-fixture.ts";

let fixture: BatchFixture;

beforeEach(() => {
  fixture = new BatchFixture();
});

test("no answer in time is told as a failure, and an answer that comes after all is heard", async () => {
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

test("who stood still reads first what a quorum's node has answered, and a process that is always late does so once", async () => {
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

test("after a timeout one probe is under way, and what waits or comes is refused at once", async () => {
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

test("a probe without an answer is repeated as its client may have dropped it, ever more rarely", async () => {
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
  ["the answer to a probe", () => fixture.probes[0]?.("pong")],
  ["a late answer", () => fixture.calls[0]?.answer()],
  ["a message", () => fixture.responsiveness.messageReceived()],
  ["an error that the server answers", () => fixture.calls[0]?.fail(new Error("LOADING Redis is loading"))],
  ["an error that does not pass", () => fixture.calls[0]?.fail(new Error("WRONGPASS invalid password"))],
])("%s ends the silence: it is told, and calls are sent again", async (_what, end) => {
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
});

test("a late answer to the first of two ends no silence: the client keeps the second", async () => {
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

test("a call that is given up begins no silence where the server was heard since it was sent", async () => {
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

test("a call that its client drops is no answer, and nothing is left to wait for", async () => {
  fixture.perform("a");
  await turn();
  await fixture.clock.advance(2_000);
  fixture.calls[0]?.fail(new Error("Connection is closed."));
  await turn();
  expect([fixture.responsiveness.isUnresponsive, fixture.recoveries]).toEqual([false, 0]);
});
