import { beforeEach, expect, test } from "vitest";

import { BatchFixture, nameOf, numbered, RecordingOperation, serverMicros, turn } from "./batch-fixture.ts";

let fixture: BatchFixture;

beforeEach(() => {
  fixture = new BatchFixture();
});

test("operations of one turn travel as one call, and each gets its own reply", async () => {
  const [a] = fixture.perform("a");
  await Promise.resolve();
  const [b] = fixture.perform("b");
  await turn();
  expect(fixture.calls).toHaveLength(1);
  expect(fixture.calls[0]?.args).toEqual(["100", '["a","b"]']);
  const keys = ["lock:k", "holdfast:queue:{lock:k}", "holdfast:info:{lock:k}"];
  expect(fixture.calls[0]?.keys).toEqual(["holdfast:fence", ...keys, ...keys]);
  fixture.calls[0]?.answer();
  await turn();
  expect([a?.value, b?.value]).toEqual(["done a", "done b"]);
});

test("a lone operation travels with plain arguments; to a node of a quorum it travels as JSON, which many nodes share", async () => {
  fixture.perform("a");
  await turn();
  expect(fixture.calls[0]?.args).toEqual(["100", "a"]);
  fixture.batcher = fixture.open(true);
  fixture.perform("a");
  await turn();
  expect(fixture.calls[1]?.args).toEqual(["3600000", "100", "0", '["a"]']);
  expect(fixture.calls[1]?.keys).toHaveLength(3); // without the counter of a single server
});

test("more operations share two calls evenly, and so do operations added during these calls", async () => {
  fixture.perform(...numbered(8));
  await turn();
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([4, 4]);
  fixture.calls[0]?.answer();
  fixture.perform("next", "next", "next", "next");
  await turn();
  expect(fixture.calls.slice(2).map(({ operations }) => operations.length)).toEqual([4]);
});

test("a turn with as many operations as the one before sends the first half at once", async () => {
  fixture.perform(...numbered(8));
  await turn();
  fixture.calls.forEach((call) => call.answer());
  await turn();
  fixture.perform(...numbered(3));
  expect(fixture.calls).toHaveLength(2);
  fixture.perform(...numbered(1));
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([4, 4, 4]);
  fixture.perform(...numbered(4));
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([4, 4, 4, 4]);
  fixture.perform(...numbered(1));
  await turn();
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([4, 4, 4, 4, 1]);
});

test.each([serverMicros, String(serverMicros), BigInt(serverMicros)])(
  "the reply to a lone form is a time, as the client library writes numbers: %o",
  async (reply) => {
    const args = ["acquire", `${"a".repeat(32)}:${"b".repeat(32)}:7`, "", "1000", "1", "0", "", "9"];
    const operation = Object.assign(new RecordingOperation("acquire"), { args });
    fixture.batcher.perform(operation);
    await turn();
    expect(fixture.calls[0]?.args.slice(2)).toEqual(["1000", "9", ""]);
    fixture.calls[0]?.reply(reply);
    await turn();
    expect(operation.replies).toMatchObject([{ value: serverMicros, serverMicros }]);
  },
);

test.each([null, 1, "OK", {}])(
  "a reply to a lone form that is no time fails the operation: %o",
  async (reply) => {
    const token = `${"a".repeat(32)}:${"b".repeat(32)}:7`;
    const operation = Object.assign(new RecordingOperation("release"), { args: ["release", token, "", "1"] });
    fixture.batcher.perform(operation);
    await turn();
    fixture.calls[0]?.reply(reply);
    await turn();
    expect(operation.failures).toMatchObject([{ retryable: false }]);
  },
);

test("a quorum's node gets one call a turn", async () => {
  fixture.batcher = fixture.open(true);
  fixture.perform(...numbered(100));
  await turn();
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([100]);
});

test.each(["a single server", "a node of a quorum"])(
  "operations that are performed again on %s have their present arguments",
  async (server) => {
    fixture.batcher = fixture.open(server === "a node of a quorum");
    const operations = ["a", "b"].map((name) => Object.assign(new RecordingOperation(name), { args: [""] }));
    for (const time of ["first", "second"]) {
      for (const operation of operations) {
        operation.args = ["acquire", "token", time];
        fixture.batcher.perform(operation);
      }
      await turn();
      expect(fixture.calls.at(-1)?.operations).toEqual(["acquire", "token", time, "acquire", "token", time]);
      fixture.calls.at(-1)?.answer([1, 1]);
      await turn();
    }
  },
);

test("a lone operation is sent in its own turn, without waiting for others", async () => {
  fixture.perform("a");
  await turn();
  fixture.perform("b");
  await turn();
  expect(fixture.calls.map(({ operations }) => operations)).toEqual([["a"], ["b"]]);
});

test("a call has at most 128 operations, in order", async () => {
  fixture.perform(...numbered(600));
  await turn();
  expect(fixture.calls.map(({ operations }) => operations.length)).toEqual([128, 128, 128, 128, 88]);
  expect(fixture.calls.flatMap(({ operations }) => operations)).toEqual(numbered(600));
});

test("operations during enough calls are gathered into the next call", async () => {
  for (let call = 0; call < 20; call += 1) {
    fixture.perform(nameOf(call));
    await turn();
  }
  const underWay = fixture.calls.length;
  expect(underWay).toBeLessThan(20);
  fixture.calls[0]?.answer();
  await turn();
  expect(fixture.calls).toHaveLength(underWay + 1);
  expect(fixture.calls.flatMap(({ operations }) => operations)).toEqual(numbered(20));
});

test("a script's error for one operation affects that operation alone", async () => {
  const [a, b] = fixture.perform("a", "b");
  await turn();
  fixture.calls[0]?.answer([["error", "WRONGTYPE of a"], "done b"]);
  await turn();
  expect([a?.value, b?.value]).toEqual([["error", "WRONGTYPE of a"], "done b"]);
});

test("a failed call fails all its operations once, and no other operation", async () => {
  const [a, b] = fixture.perform("a", "b");
  await turn();
  const [c] = fixture.perform("c");
  await turn();
  const error = new Error("ECONNRESET");
  fixture.calls[0]?.fail(error);
  fixture.calls[1]?.answer();
  await turn();
  await fixture.clock.advance(10_000);
  expect([a?.failures, b?.failures, c?.failures]).toEqual([[error], [error], []]);
  expect(c?.value).toBe("done c");
});

test("a reply has the time at which its request was sent", async () => {
  await fixture.clock.advance(50);
  const [a] = fixture.perform("a");
  await turn();
  await fixture.clock.advance(30);
  fixture.calls[0]?.answer();
  await turn();
  expect(a?.replies[0]?.sent).toEqual({ now: 50, wall: 1_000_050 });
  expect(a?.replies[0]?.serverMicros).toBe(serverMicros);
  expect(fixture.received).toEqual([[serverMicros, 50, 80]]);
});

test("a reply to a request from before a connection loss is marked as such", async () => {
  const [a] = fixture.perform("a");
  await turn();
  fixture.batcher.interrupted();
  const [b] = fixture.perform("b");
  await turn();
  fixture.calls[0]?.answer();
  fixture.calls[1]?.answer();
  await turn();
  expect([a?.replies[0]?.sameConnection, b?.replies[0]?.sameConnection]).toEqual([false, true]);
});

test("after a reply no timer is left, and no timer keeps the process alive", async () => {
  fixture.perform("a");
  await turn();
  expect(fixture.clock.timers(true)).toBe(0);
  fixture.calls[0]?.answer();
  await turn();
  expect(fixture.clock.timers()).toBe(0);
});
