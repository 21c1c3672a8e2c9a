import { manualClock, type ManualClock } from "holdfast/testing";
import { isLockError } from "holdfast";
import type { Connection } from "holdfast/redis";
import { beforeEach, expect, test } from "vitest";

import type { Instant } from "../../../../src/runtime/clock.ts";
import { Batcher, type Header } from "../../../../src/drivers/redis/server/batch.ts";
import { counterKey, KeySpace } from "../../../../src/drivers/redis/protocol/keys.ts";
import type { Operation, Reply } from "../../../../src/drivers/redis/protocol/operation.ts";
import {
  executeSingleScript,
  executeQuorumScript,
} from "../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { Responsiveness } from "../../../../src/drivers/redis/server/responsiveness.ts";
import { commandText } from "../../../support/diagnostics-log.ts";

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly operations: readonly string[];
  answer(answers?: readonly unknown[]): void;
  fail(error: unknown): void;
}

const serverMicros = 1_700_000_000_000_000;
const space = new KeySpace("", "lock:");

let clock: ManualClock;
let batcher: Batcher;
let connection: Connection;
let calls: Call[];
let silence: Responsiveness;
let probes: ((answer: unknown) => void)[];
let endings: number;
let heard: [serverMicros: number, sentAt: number, receivedAt: number][];

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  calls = [];
  probes = [];
  endings = 0;
  heard = [];
  connection = {
    run: (_script: unknown, keys: readonly string[], args: readonly string[]) =>
      new Promise((resolve, reject) => {
        const operations = commandText(args);
        const all = (): unknown[] => operations.map((name) => `done ${name}`);
        calls.push({
          keys,
          args,
          operations,
          answer: (answers = all()) => {
            resolve([serverMicros, ...answers]);
          },
          fail: reject,
        });
      }),
  } as unknown as Connection;
  batcher = open();
});

function open(withRunId = false): Batcher {
  const settings = withRunId
    ? { script: executeQuorumScript, keys: [], args: ["3600000", "100", "1"] }
    : { script: executeSingleScript, keys: [counterKey()], args: ["100"] };
  const listener = {
    replied: ({ serverMicros: micros }: Header, sent: Instant, received: number) => {
      heard.push([micros, sent.now, received]);
    },
    unresponsive: () => undefined,
  };
  silence = new Responsiveness({
    clock,
    timeoutMs: 2_000,
    probe: () => new Promise((resolve) => probes.push(resolve)),
    recovered: () => {
      endings += 1;
    },
  });
  return new Batcher(connection, clock, { ...settings, timeoutMs: 2_000, withRunId }, listener, silence);
}

class Asked implements Operation {
  readonly keys = space.keysOf("k");
  readonly args: readonly string[];
  readonly replies: Reply[] = [];
  readonly failures: unknown[] = [];

  constructor(name: string) {
    this.args = [name];
  }

  answered(reply: Reply): void {
    this.replies.push(reply);
  }

  failed(error: unknown): void {
    this.failures.push(error);
  }

  get value(): unknown {
    return this.replies.at(-1)?.value;
  }
}

function ask(...names: string[]): Asked[] {
  return names.map((name) => {
    const operation = new Asked(name);
    batcher.perform(operation);
    return operation;
  });
}

/** The name of an operation has letters only. */
function nameOf(index: number): string {
  return `op${String(index).replace(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string)}`;
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => nameOf(index));
}

/** What was asked for in this turn is sent, and answers have come through. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("operations of one turn travel as one call, and are answered each by its own", async () => {
  const [a] = ask("a");
  await Promise.resolve();
  const [b] = ask("b");
  await turn();
  expect(calls).toHaveLength(1);
  expect(calls[0]?.args).toEqual(["100", '["a","b"]']);
  const keys = ["lock:k", "holdfast:queue:{lock:k}", "holdfast:info:{lock:k}"];
  expect(calls[0]?.keys).toEqual(["holdfast:fence", ...keys, ...keys]);
  calls[0]?.answer();
  await turn();
  expect([a?.value, b?.value]).toEqual(["done a", "done b"]);
});

test("an operation alone travels with its arguments as they are; to a quorum's node as JSON, which many nodes share", async () => {
  ask("a");
  await turn();
  expect(calls[0]?.args).toEqual(["100", "a"]);
  batcher = open(true);
  ask("a");
  await turn();
  expect(calls[1]?.args).toEqual(["3600000", "100", "1", '["a"]']);
  expect(calls[1]?.keys).toHaveLength(3); // without the counter of one server
});

test("more of them share two calls, evenly, and so does what is asked while these are under way", async () => {
  ask(...numbered(8));
  await turn();
  expect(calls.map(({ operations }) => operations.length)).toEqual([4, 4]);
  calls[0]?.answer();
  ask("next", "next", "next", "next");
  await turn();
  expect(calls.slice(2).map(({ operations }) => operations.length)).toEqual([4]);
});

test("a quorum's node is sent one call a turn", async () => {
  batcher = open(true);
  ask(...numbered(100));
  await turn();
  expect(calls.map(({ operations }) => operations.length)).toEqual([100]);
});

test("operations that are sent again together have the arguments that they have now", async () => {
  const operations = ["a", "b"].map((name) => Object.assign(new Asked(name), { args: [""] }));
  for (const time of ["first", "second"]) {
    for (const operation of operations) {
      operation.args = ["acquire", "token", time];
      batcher.perform(operation);
    }
    await turn();
    expect(calls.at(-1)?.operations).toEqual(["acquire", "token", time, "acquire", "token", time]);
    calls.at(-1)?.answer([1, 1]);
    await turn();
  }
});

test("nothing waits for company: an operation alone is sent in its own turn", async () => {
  ask("a");
  await turn();
  ask("b");
  await turn();
  expect(calls.map(({ operations }) => operations)).toEqual([["a"], ["b"]]);
});

test("a call has at most 128 operations, in order", async () => {
  ask(...numbered(600));
  await turn();
  expect(calls.map(({ operations }) => operations.length)).toEqual([128, 128, 128, 128, 88]);
  expect(calls.flatMap(({ operations }) => operations)).toEqual(numbered(600));
});

test("what comes while enough calls are under way is gathered into the next", async () => {
  for (let call = 0; call < 20; call += 1) {
    ask(nameOf(call));
    await turn();
  }
  const underWay = calls.length;
  expect(underWay).toBeLessThan(20);
  calls[0]?.answer();
  await turn();
  expect(calls).toHaveLength(underWay + 1);
  expect(calls.flatMap(({ operations }) => operations)).toEqual(numbered(20));
});

test("a script's error for one operation is that operation's alone", async () => {
  const [a, b] = ask("a", "b");
  await turn();
  calls[0]?.answer([["error", "WRONGTYPE of a"], "done b"]);
  await turn();
  expect([a?.value, b?.value]).toEqual([["error", "WRONGTYPE of a"], "done b"]);
});

test("a call that fails fails all its operations, once, and no other", async () => {
  const [a, b] = ask("a", "b");
  await turn();
  const [c] = ask("c");
  await turn();
  const error = new Error("ECONNRESET");
  calls[0]?.fail(error);
  calls[1]?.answer();
  await turn();
  await clock.advance(10_000);
  expect([a?.failures, b?.failures, c?.failures]).toEqual([[error], [error], []]);
  expect(c?.value).toBe("done c");
});

test("no answer in time is told as a failure, and an answer that comes after all is heard", async () => {
  const [a] = ask("a");
  await turn();
  await clock.advance(1_999);
  expect(a?.failures).toEqual([]);
  await clock.advance(1);
  expect(a?.failures).toHaveLength(1);
  expect(isLockError(a?.failures[0], "engine-unavailable")).toBe(true);
  expect(a?.failures[0]).toMatchObject({ outcome: "unknown", retryable: true });
  calls[0]?.answer();
  await turn();
  expect([a?.value, a?.failures.length]).toEqual(["done a", 1]);
});

test("who stood still reads first what a quorum's node has answered, and a process that is always late does so once", async () => {
  batcher = open(true);
  const [operation] = ask("a");
  await clock.advance(0);
  clock.block(2_100);
  await clock.advance(0);
  expect(operation?.failures).toEqual([]);
  clock.block(100);
  await clock.advance(0);
  expect(operation?.failures).toMatchObject([{ message: expect.stringContaining("2000 ms") as string }]);
});

test("after a timeout one probe is under way, and what waits or comes is refused at once", async () => {
  const operations: Asked[] = [];
  for (let call = 0; call < 20; call += 1) {
    operations.push(...ask(nameOf(call)));
    await turn();
  }
  await clock.advance(2_000);
  operations.push(...ask("late", "later"));
  await turn();
  expect(calls).toHaveLength(8);
  expect(operations.every(({ failures }) => failures.length === 1)).toBe(true);
  expect(operations.at(-1)?.failures).toMatchObject([{ outcome: "none", retryable: true }]);
  expect(probes).toHaveLength(1);
  await clock.advance(1_999);
  ask("again");
  await turn();
  expect([probes.length, silence.isUnresponsive, endings]).toEqual([1, true, 0]);
});

test("a probe without an answer is repeated as its client may have dropped it, ever more rarely", async () => {
  ask("a");
  await turn();
  await clock.advance(2_000);
  const waitFor = async (seconds: number): Promise<number> => {
    for (let second = 0; second < seconds; second += 1) {
      ask("again");
      await turn();
      await clock.advance(1_000);
    }
    return probes.length;
  };
  expect(await waitFor(10)).toBe(5);
  expect(await waitFor(590)).toBeLessThan(50);
});

test.each([
  ["the answer to a probe", () => probes[0]?.("pong")],
  ["a late answer", () => calls[0]?.answer()],
  ["a message", () => silence.messageReceived()],
  ["an error that the server answers", () => calls[0]?.fail(new Error("LOADING Redis is loading"))],
  ["an error that does not pass", () => calls[0]?.fail(new Error("WRONGPASS invalid password"))],
])("%s ends the silence: it is told, and calls are sent again", async (_what, end) => {
  ask("a");
  await turn();
  await clock.advance(2_000);
  const [refused] = ask("b");
  await turn();
  expect(refused?.failures).toHaveLength(1);
  end();
  await turn();
  expect([silence.isUnresponsive, endings]).toEqual([false, 1]);
  ask("c");
  await turn();
  expect(calls.map(({ operations }) => operations)).toEqual([["a"], ["c"]]);
});

test("a late answer to the first of two ends no silence: the client keeps the second", async () => {
  ask("a");
  await turn();
  ask("b");
  await turn();
  await clock.advance(2_000);
  calls[0]?.answer();
  await turn();
  expect([silence.isUnresponsive, endings]).toEqual([true, 0]);
  calls[1]?.answer();
  await turn();
  expect([silence.isUnresponsive, endings]).toEqual([false, 1]);
});

test("a call that is given up begins no silence where the server was heard since it was sent", async () => {
  const [early] = ask("early");
  await turn();
  await clock.advance(1_000);
  silence.messageReceived();
  const [late] = ask("late");
  await turn();
  await clock.advance(1_000);
  expect([early?.failures.length, late?.failures.length, silence.isUnresponsive]).toEqual([1, 0, false]);
  await clock.advance(1_000);
  expect([late?.failures.length, silence.isUnresponsive, probes.length]).toEqual([1, true, 1]);
});

test("a call that its client drops is no answer, and nothing is left to wait for", async () => {
  ask("a");
  await turn();
  await clock.advance(2_000);
  calls[0]?.fail(new Error("Connection is closed."));
  await turn();
  expect([silence.isUnresponsive, endings]).toEqual([false, 0]);
});

test("a reply says when its request was sent, not when it was asked for or answered", async () => {
  await clock.advance(50);
  const [a] = ask("a");
  await turn();
  await clock.advance(30);
  calls[0]?.answer();
  await turn();
  expect(a?.replies[0]?.sent).toEqual({ now: 50, wall: 1_000_050 });
  expect(a?.replies[0]?.serverMicros).toBe(serverMicros);
  expect(heard).toEqual([[serverMicros, 50, 80]]);
});

test("a reply to what was sent before a connection was lost is not steady", async () => {
  const [a] = ask("a");
  await turn();
  batcher.interrupted();
  const [b] = ask("b");
  await turn();
  calls[0]?.answer();
  calls[1]?.answer();
  await turn();
  expect([a?.replies[0]?.sameConnection, b?.replies[0]?.sameConnection]).toEqual([false, true]);
});

test("after an answer no timer is left, and none holds the process", async () => {
  ask("a");
  await turn();
  expect(clock.timers(true)).toBe(0);
  calls[0]?.answer();
  await turn();
  expect(clock.timers()).toBe(0);
});
