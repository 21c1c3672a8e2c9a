import { beforeEach, describe, expect, test } from "vitest";

import type { Handoverable } from "../../src/lease/lease-state.ts";
import { KeyQueues, LocalQueue, type LocalWaiter } from "../../src/local/local-queue.ts";
import { QueueNode } from "../../src/runtime/linked-queue.ts";

interface FakeHold extends Handoverable<FakeHold> {
  readonly of: string;
}

function held(of: string): FakeHold {
  return { of, handoverRun: undefined };
}

const limits = { max: 2, maxMs: 100 };
let queue: LocalQueue<FakeHold>;
let events: string[];

beforeEach(() => {
  queue = new LocalQueue(1, 0);
  events = [];
});

function caller(name: string, takes = true): LocalWaiter<FakeHold> {
  const self: LocalWaiter<FakeHold> = {
    get queueNode() {
      return link;
    },
    isAtEngine: false,
    describe: () => ({ owner: name, since: 0, waitedMs: 0 }),
    canTakeOver: () => takes,
    takeOver: (hold) => {
      events.push(`${name} takes over from ${hold.of}`);
      return held(name);
    },
    requestFromEngine: (from) => {
      events.push(from ? `${name} contends, releasing ${from.of}` : `${name} contends`);
      return from && Promise.resolve(true);
    },
  };
  const link = new QueueNode(self);
  return self;
}

/** A queue whose first caller holds, with other callers after it. */
function heldBy(name: string, ...others: LocalWaiter<FakeHold>[]): FakeHold {
  const [first, hold] = [caller(name), held(name)];
  queue.enqueue(first);
  for (const other of others) {
    queue.enqueue(other);
  }
  queue.granted(first, hold, 0);
  events = [];
  return hold;
}

test("only the first caller in the queue contends", () => {
  queue.enqueue(caller("a"));
  queue.enqueue(caller("b"));
  queue.enqueue(caller("c"));
  expect(events).toEqual(["a contends"]);
  expect(queue.waiterCount).toBe(3);
});

test("a released hold goes to the next caller, in order of arrival", () => {
  const hold = heldBy("a", caller("b"), caller("c"));
  expect(queue.release(hold, 1, limits)).toEqual({ to: "caller" });
  expect(queue.release(queue.holder as FakeHold, 1, limits)).toEqual({ to: "caller" });
  expect(events).toEqual(["b takes over from a", "c takes over from b"]);
});

test("without a next caller a released hold goes to the engine, and the queue is empty", () => {
  const hold = heldBy("a");
  expect(queue.isEmpty).toBe(false);
  expect(queue.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(queue.isEmpty).toBe(true);
});

test("after handover.max hand-overs the next caller requeues, so that other processes get their turn", async () => {
  heldBy("a", caller("b"), caller("c"), caller("d"), caller("e"));
  queue.release(queue.holder as FakeHold, 1, limits);
  queue.release(queue.holder as FakeHold, 2, limits);
  const leaving = queue.release(queue.holder as FakeHold, 3, limits);
  expect(events).toEqual(["b takes over from a", "c takes over from b", "d contends, releasing c"]);
  expect(leaving.to).toBe("others");
  expect(leaving.to === "others" && (await leaving.released)).toBe(true);
  expect(queue.holder).toBeUndefined();
});

test("a new grant begins a new run", () => {
  const [d, e] = [caller("d"), caller("e")];
  heldBy("a", caller("b"), caller("c"), d, e);
  for (let turn = 0; turn < 3; turn += 1) {
    queue.release(queue.holder as FakeHold, 1, limits);
  }
  queue.granted(d, held("d"), 1_000);
  expect(queue.release(queue.holder as FakeHold, 1_001, limits)).toEqual({ to: "caller" });
  expect(events.at(-1)).toBe("e takes over from d");
});

test("a run of hand-overs is bounded in time as well", () => {
  heldBy("a", caller("b"), caller("c"));
  expect(queue.release(queue.holder as FakeHold, 99, limits).to).toBe("caller");
  expect(queue.release(queue.holder as FakeHold, 100, limits).to).toBe("others");
  expect(events).toEqual(["b takes over from a", "c contends, releasing b"]);
});

test("without hand-overs the next caller requeues at every release", () => {
  const hold = heldBy("a", caller("b"));
  expect(queue.release(hold, 0, { max: 0, maxMs: 100 }).to).toBe("others");
});

test("a caller that cannot take over the hold contends, and the hold is released", () => {
  const hold = heldBy("a", caller("b", false));
  expect(queue.release(hold, 1, limits).to).toBe("others");
  expect(events).toEqual(["b contends, releasing a"]);
});

test("after a contender leaves, the next caller contends", () => {
  const first = caller("a");
  queue.enqueue(first);
  queue.enqueue(caller("b"));
  queue.dequeue(first);
  expect(events).toEqual(["a contends", "b contends"]);
});

test("a caller that leaves from the middle is skipped", () => {
  const b = caller("b");
  const hold = heldBy("a", b, caller("c"));
  queue.dequeue(b);
  expect(events).toEqual([]);
  queue.release(hold, 1, limits);
  expect(events).toEqual(["c takes over from a"]);
});

test("a lost hold is not handed over, and the next caller contends", () => {
  const hold = heldBy("a", caller("b"));
  queue.leaseEnded(hold);
  expect(events).toEqual(["b contends"]);
  expect(queue.release(hold, 1, limits)).toEqual({ to: "engine" });
});

test("a hold from outside the queue goes to the engine and changes nothing", () => {
  const hold = heldBy("a", caller("b"));
  expect(queue.release(held("elsewhere"), 1, limits)).toEqual({ to: "engine" });
  expect([queue.holder, events]).toEqual([hold, []]);
});

test("a hold that was acquired without the queue can be handed to the queue", () => {
  const hold = held("try");
  queue.startRun(hold, 0);
  queue.enqueue(caller("a"));
  expect(events).toEqual([]);
  queue.release(hold, 1, limits);
  expect(events).toEqual(["a takes over from try"]);
});

test("while a caller contends, a hold that was acquired without the queue goes to the engine", () => {
  queue.enqueue(caller("a"));
  queue.enqueue(caller("b"));
  const hold = held("try");
  queue.startRun(hold, 0);
  expect(queue.release(hold, 1, limits)).toEqual({ to: "engine" });
  expect(events).toEqual(["a contends"]);
});

test("the queues of a key count the waiters outside the queues", () => {
  const queues = new KeyQueues<FakeHold>();
  expect([queues.waiterCount, queues.isEmpty]).toEqual([0, true]);
  queues.directWaiters = 2;
  expect([queues.waiterCount, queues.isEmpty]).toEqual([2, false]);
});

describe("of a semaphore", () => {
  /** A queue for two permits, both held by its callers, with other callers after them. */
  function heldByTwo(...others: LocalWaiter<FakeHold>[]): [FakeHold, FakeHold] {
    queue = new LocalQueue(2, 1);
    const [one, other] = [caller("a"), caller("b")];
    const holds: [FakeHold, FakeHold] = [held("a"), held("b")];
    [one, other, ...others].forEach((each) => queue.enqueue(each));
    queue.granted(one, holds[0], 0);
    queue.granted(other, holds[1], 10);
    events = [];
    return holds;
  }

  test("one caller contends for each permit, and one waits at the engine while all permits are held", () => {
    queue = new LocalQueue(2, 1);
    const [a, b] = [caller("a"), caller("b")];
    [a, b, caller("c"), caller("d")].forEach((each) => queue.enqueue(each));
    expect(events).toEqual(["a contends", "b contends"]);
    queue.granted(a, held("a"), 0);
    expect(events).toHaveLength(2);
    queue.granted(b, held("b"), 0);
    expect(events.slice(2)).toEqual(["c contends"]);
    expect([queue.waiterCount, queue.localWaiterCount]).toEqual([2, 1]);
  });

  test("a released hold goes to the first that waits in memory", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    expect(queue.release(other, 1, limits)).toEqual({ to: "caller" });
    expect(queue.release(one, 1, limits)).toEqual({ to: "caller" });
    expect(events).toEqual(["c takes over from b", "d takes over from a"]);
    expect(Array.from(queue.held, ({ of }) => of)).toEqual(["c", "d"]);
  });

  test("each run has its own bound", () => {
    heldByTwo(caller("at the engine"), ...Array.from({ length: 9 }, (_, index) => caller(`${index}`)));
    const newest = (): FakeHold => [...queue.held].at(-1) as FakeHold;
    for (let turn = 0; turn < limits.max; turn += 1) {
      expect(queue.release(newest(), 20, limits).to).toBe("caller");
    }
    expect(queue.release(newest(), 20, limits).to).toBe("engine");
    const [last] = queue.held;
    expect(last?.of).toBe("a");
    expect(queue.release(last as FakeHold, 20, limits).to).toBe("caller");
    expect(queue.release(newest(), 100, limits).to).toBe("others");
  });

  test("after the end of a run, a caller contends at the engine for each permit that the process released", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    const none = { max: 0, maxMs: 100 };
    expect(queue.release(one, 1, none)).toEqual({ to: "engine" });
    expect(events).toEqual([]);
    expect(queue.release(other, 1, none).to).toBe("others");
    expect(events).toEqual(["c contends, releasing b"]);
  });

  test("a lost hold is not handed over, and another caller contends for its permit", () => {
    const [one, other] = heldByTwo(caller("at the engine"), caller("c"), caller("d"));
    queue.leaseEnded(one);
    expect(events).toEqual([]);
    queue.leaseEnded(other);
    expect(events).toEqual(["c contends"]);
    expect(queue.release(one, 1, limits)).toEqual({ to: "engine" });
  });

  test("callers share a queue only with the same number of permits and the same limit", () => {
    const queues = new KeyQueues<FakeHold>();
    const share = (permits: number, limit: number) => ({ kind: "semaphore", permits, limit }) as const;
    const queue14 = queues.queueFor(share(1, 4));
    expect(queues.queueFor({ ...share(1, 4), hasWaited: true })).toBe(queue14);
    expect(
      new Set([
        queue14,
        queues.queueFor(share(2, 4)),
        queues.queueFor(share(1, 3)),
        queues.queueFor(undefined),
      ]).size,
    ).toBe(4);
  });

  test("a queue in use is retained, however many other queues exist", () => {
    const queues = new KeyQueues<FakeHold>();
    const used = queues.queueFor({ kind: "semaphore", permits: 1, limit: 2 });
    used.enqueue(caller("a"));
    for (let limit = 3; limit < 50; limit += 1) {
      queues.queueFor({ kind: "semaphore", permits: 1, limit });
    }
    expect(queues.queueFor({ kind: "semaphore", permits: 1, limit: 2 })).toBe(used);
    expect(queues.queues.length).toBeLessThan(12);
  });

  test("wasGranted is true from the engine's grant until the queue is empty", () => {
    const [one, other] = heldByTwo();
    expect(queue.wasGranted).toBe(true);
    queue.release(one, 1, limits);
    queue.release(other, 1, limits);
    queue.enqueue(caller("c"));
    expect(queue.wasGranted).toBe(false);
  });
});
