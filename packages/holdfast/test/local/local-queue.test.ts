import { beforeEach, describe, expect, test } from "vitest";

import type { Handoverable } from "../../src/lease/handover-run.ts";
import { KeyQueues } from "../../src/local/key-queues.ts";
import { LocalQueue, type LocalWaiter } from "../../src/local/local-queue.ts";
import { QueueNode } from "../../src/runtime/linked-queue.ts";

interface FakeHold extends Handoverable<FakeHold> {
  readonly of: string;
}

function held(of: string): FakeHold {
  return { of, handoverRun: undefined };
}

const limits = { max: 2, maxMs: 100 };
let line: LocalQueue<FakeHold>;
let told: string[];

beforeEach(() => {
  line = new LocalQueue(1, 0);
  told = [];
});

function caller(name: string, takes = true): LocalWaiter<FakeHold> {
  const self: LocalWaiter<FakeHold> = {
    get queueNode() {
      return link;
    },
    isAtEngine: false,
    describe: () => ({ owner: name, since: 0 }),
    canTakeOver: () => takes,
    takeOver: (hold) => {
      told.push(`${name} takes over from ${hold.of}`);
      return held(name);
    },
    requestFromEngine: (from) => {
      told.push(from ? `${name} contends, giving up ${from.of}` : `${name} contends`);
      return from && Promise.resolve(true);
    },
  };
  const link = new QueueNode(self);
  return self;
}

/** A line whose first caller holds, with others behind it. */
function heldBy(name: string, ...others: LocalWaiter<FakeHold>[]): FakeHold {
  const [first, hold] = [caller(name), held(name)];
  line.enqueue(first);
  for (const other of others) {
    line.enqueue(other);
  }
  line.granted(first, hold, 0);
  told = [];
  return hold;
}

test("only the first in line contends", () => {
  line.enqueue(caller("a"));
  line.enqueue(caller("b"));
  line.enqueue(caller("c"));
  expect(told).toEqual(["a contends"]);
  expect(line.waiterCount).toBe(3);
});

test("a released hold goes to the next, in order of arrival", () => {
  const hold = heldBy("a", caller("b"), caller("c"));
  expect(line.release(hold, 1, limits)).toEqual({ to: "caller" });
  expect(line.release(line.holder as FakeHold, 1, limits)).toEqual({ to: "caller" });
  expect(told).toEqual(["b takes over from a", "c takes over from b"]);
});

test("with nobody behind it a released hold goes to the engine, and the line is empty", () => {
  const hold = heldBy("a");
  expect(line.isEmpty).toBe(false);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(line.isEmpty).toBe(true);
});

test("after so many hand-overs the hold is passed on, for others to get their turn", async () => {
  heldBy("a", caller("b"), caller("c"), caller("d"), caller("e"));
  line.release(line.holder as FakeHold, 1, limits);
  line.release(line.holder as FakeHold, 2, limits);
  const leaving = line.release(line.holder as FakeHold, 3, limits);
  expect(told).toEqual(["b takes over from a", "c takes over from b", "d contends, giving up c"]);
  expect(leaving.to).toBe("others");
  expect(leaving.to === "others" && (await leaving.released)).toBe(true);
  expect(line.holder).toBeUndefined();
});

test("a new grant begins a new run", () => {
  const [d, e] = [caller("d"), caller("e")];
  heldBy("a", caller("b"), caller("c"), d, e);
  for (let turn = 0; turn < 3; turn += 1) {
    line.release(line.holder as FakeHold, 1, limits);
  }
  line.granted(d, held("d"), 1_000);
  expect(line.release(line.holder as FakeHold, 1_001, limits)).toEqual({ to: "caller" });
  expect(told.at(-1)).toBe("e takes over from d");
});

test("a run of hand-overs is bounded in time as well", () => {
  heldBy("a", caller("b"), caller("c"));
  expect(line.release(line.holder as FakeHold, 99, limits).to).toBe("caller");
  expect(line.release(line.holder as FakeHold, 100, limits).to).toBe("others");
  expect(told).toEqual(["b takes over from a", "c contends, giving up b"]);
});

test("without hand-overs every release is passed on", () => {
  const hold = heldBy("a", caller("b"));
  expect(line.release(hold, 0, { max: 0, maxMs: 100 }).to).toBe("others");
});

test("a caller that may not take the hold over contends, giving it up", () => {
  const hold = heldBy("a", caller("b", false));
  expect(line.release(hold, 1, limits).to).toBe("others");
  expect(told).toEqual(["b contends, giving up a"]);
});

test("a contender that leaves hands its turn on", () => {
  const first = caller("a");
  line.enqueue(first);
  line.enqueue(caller("b"));
  line.dequeue(first);
  expect(told).toEqual(["a contends", "b contends"]);
});

test("one that leaves from the middle is passed over", () => {
  const b = caller("b");
  const hold = heldBy("a", b, caller("c"));
  line.dequeue(b);
  expect(told).toEqual([]);
  line.release(hold, 1, limits);
  expect(told).toEqual(["c takes over from a"]);
});

test("nobody is handed a hold that was lost: the next contends", () => {
  const hold = heldBy("a", caller("b"));
  line.leaseEnded(hold);
  expect(told).toEqual(["b contends"]);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
});

test("a hold that is not the line's goes to the engine and changes nothing", () => {
  const hold = heldBy("a", caller("b"));
  expect(line.release(held("elsewhere"), 1, limits)).toEqual({ to: "engine" });
  expect([line.holder, told]).toEqual([hold, []]);
});

test("a hold that was got past the line serves it too", () => {
  const hold = held("try");
  line.startRun(hold, 0);
  line.enqueue(caller("a"));
  expect(told).toEqual([]);
  line.release(hold, 1, limits);
  expect(told).toEqual(["a takes over from try"]);
});

test("where somebody contends already, a hold that was got past the line is released by itself", () => {
  line.enqueue(caller("a"));
  line.enqueue(caller("b"));
  const hold = held("try");
  line.startRun(hold, 0);
  expect(line.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(told).toEqual(["a contends"]);
});

test("the lines of a key count those that wait past them", () => {
  const lines = new KeyQueues<FakeHold>();
  expect([lines.waiterCount, lines.isEmpty]).toEqual([0, true]);
  lines.directWaiters = 2;
  expect([lines.waiterCount, lines.isEmpty]).toEqual([2, false]);
});

describe("of a semaphore", () => {
  /** A line before two permits, both held by callers of it, with others behind them. */
  function heldByTwo(...others: LocalWaiter<FakeHold>[]): [FakeHold, FakeHold] {
    line = new LocalQueue(2, 1);
    const [one, other] = [caller("a"), caller("b")];
    const holds: [FakeHold, FakeHold] = [held("a"), held("b")];
    [one, other, ...others].forEach((each) => line.enqueue(each));
    line.granted(one, holds[0], 0);
    line.granted(other, holds[1], 10);
    told = [];
    return holds;
  }

  test("so many contend as there are permits, and one stands at the engine while those are held", () => {
    line = new LocalQueue(2, 1);
    const [a, b] = [caller("a"), caller("b")];
    [a, b, caller("c"), caller("d")].forEach((each) => line.enqueue(each));
    expect(told).toEqual(["a contends", "b contends"]);
    line.granted(a, held("a"), 0);
    expect(told).toHaveLength(2);
    line.granted(b, held("b"), 0);
    expect(told.slice(2)).toEqual(["c contends"]);
    expect([line.waiterCount, line.localWaiterCount]).toEqual([2, 1]);
  });

  test("a released hold goes to the first that waits in memory", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    expect(line.release(other, 1, limits)).toEqual({ to: "caller" });
    expect(line.release(one, 1, limits)).toEqual({ to: "caller" });
    expect(told).toEqual(["c takes over from b", "d takes over from a"]);
    expect(Array.from(line.held, ({ of }) => of)).toEqual(["c", "d"]);
  });

  test("each run has a bound of its own", () => {
    heldByTwo(caller("at the engine"), ...Array.from({ length: 9 }, (_, index) => caller(`${index}`)));
    const newest = (): FakeHold => [...line.held].at(-1) as FakeHold;
    for (let turn = 0; turn < limits.max; turn += 1) {
      expect(line.release(newest(), 20, limits).to).toBe("caller");
    }
    expect(line.release(newest(), 20, limits).to).toBe("engine");
    const [last] = line.held;
    expect(last?.of).toBe("a");
    expect(line.release(last as FakeHold, 20, limits).to).toBe("caller");
    expect(line.release(newest(), 100, limits).to).toBe("others");
  });

  test("where a run is over, a caller stands at the engine for each permit that the process gave up", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    const none = { max: 0, maxMs: 100 };
    expect(line.release(one, 1, none)).toEqual({ to: "engine" });
    expect(told).toEqual([]);
    expect(line.release(other, 1, none).to).toBe("others");
    expect(told).toEqual(["c contends, giving up b"]);
  });

  test("a hold that was lost is handed to nobody, and another caller contends for its permit", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    line.leaseEnded(one);
    expect(told).toEqual([]);
    line.leaseEnded(other);
    expect(told).toEqual(["c contends"]);
    expect(line.release(one, 1, limits)).toEqual({ to: "engine" });
  });

  test("callers stand in one line only if they want as many permits of the same limit", () => {
    const lines = new KeyQueues<FakeHold>();
    const share = (permits: number, limit: number) => ({ kind: "semaphore", permits, limit }) as const;
    const line14 = lines.queueFor(share(1, 4));
    expect(lines.queueFor({ ...share(1, 4), hasWaited: true })).toBe(line14);
    expect(
      new Set([line14, lines.queueFor(share(2, 4)), lines.queueFor(share(1, 3)), lines.queueFor(undefined)])
        .size,
    ).toBe(4);
  });

  test("a line that is in use is kept, however many others there are", () => {
    const lines = new KeyQueues<FakeHold>();
    const used = lines.queueFor({ kind: "semaphore", permits: 1, limit: 2 });
    used.enqueue(caller("a"));
    for (let limit = 3; limit < 50; limit += 1) {
      lines.queueFor({ kind: "semaphore", permits: 1, limit });
    }
    expect(lines.queueFor({ kind: "semaphore", permits: 1, limit: 2 })).toBe(used);
    expect(lines.queues.length).toBeLessThan(12);
  });

  test("the engine has granted what a line asks for, until nobody is in it", () => {
    const [one, other] = heldByTwo();
    expect(line.wasGranted).toBe(true);
    line.release(one, 1, limits);
    line.release(other, 1, limits);
    line.enqueue(caller("c"));
    expect(line.wasGranted).toBe(false);
  });
});
