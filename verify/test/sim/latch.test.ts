import { expect, test } from "vitest";

import { Findings } from "../../sim/judge/findings.ts";
import { LatchHistory, type LatchCall, type LatchHandle } from "../../sim/judge/latch-history.ts";
import type { LatchSnapshot } from "../../sim/judge/latch-snapshot.ts";

const latestMs = 500;
const ttlMs = 1_000;

/** An engine that can be made to have anything, and what is found then. */
class LatchFixture {
  now = 0;
  snapshot: LatchSnapshot | undefined;
  readonly findings: Findings = new Findings(() => this.now);
  readonly history: LatchHistory;

  constructor(patienceMs = Infinity) {
    const observer = { now: () => this.now, read: () => this.snapshot };
    const openBound = (): { since: number; ms: number } => ({ since: 0, ms: patienceMs });
    this.history = new LatchHistory(this.findings, "k", observer, {
      latestMs,
      isDurable: true,
      dequeuesOnTimeout: true,
      openBound,
    });
  }

  get found(): readonly string[] {
    return this.findings.list.map(({ check, text }) => `${check}: ${text}`);
  }

  view(client = 1): LatchHandle {
    return { client, count: 3, ttlMs, firstUsedAt: this.now, generations: undefined };
  }

  callStarted(view: LatchHandle, attempt?: string): LatchCall {
    return this.history.callStarted(view, attempt);
  }

  /** The engine has this a ms later. */
  setSnapshot(change: Partial<LatchSnapshot> | undefined): void {
    this.now += 1;
    const fresh = { id: `born at ${this.now}`, total: 3, remaining: 3, endsAt: this.now + ttlMs };
    this.snapshot = change && { ...(this.snapshot ?? fresh), ...change };
    this.history.check();
  }

  /** It is counted down by three callers, and open. */
  open(): LatchHandle {
    const view = this.view();
    for (const remaining of [2, 1, 0]) {
      const call = this.callStarted(view, `attempt ${remaining}`);
      this.setSnapshot({ remaining });
      this.history.counted(call, remaining);
    }
    return view;
  }
}

test("a latch that is counted down, opens and ends is as it should be", () => {
  const world = new LatchFixture();
  const view = world.open();
  const waiting = world.callStarted(view);
  world.history.opened(waiting);
  const late = world.callStarted(view, "another");
  world.history.counted(late, 0);
  world.now = 1_100;
  world.setSnapshot(undefined);
  world.history.expired(world.callStarted(view));
  expect(world.found).toEqual([]);
});

type SeededDefect = readonly [
  what: string,
  found: RegExp,
  spoil: (world: LatchFixture, view: LatchHandle) => void,
];

const seededDefects: readonly SeededDefect[] = [
  [
    "closes again",
    /^latch: k: a latch was 0 of 3 until \d+, and is 1 of 3/,
    (world) => {
      world.setSnapshot({ remaining: 1 });
    },
  ],
  [
    "ends at another time",
    /^latch: k: a latch was 0 of 3 until 1001, and is 0 of 3 until 5000/,
    (world) => {
      world.setSnapshot({ endsAt: 5_000 });
    },
  ],
  [
    "is gone before its time",
    /^latch: k: a latch is gone \d+ ms before its end/,
    (world) => {
      world.setSnapshot(undefined);
    },
  ],
  [
    "is told to be over",
    /^latch: k: client 1, .* was told that its latch is over, and none is/,
    (world, view) => {
      world.history.expired(world.callStarted(view));
    },
  ],
  [
    "is told to lack one",
    /^count: k: client 1, .* was told that 1 are left, as of no latch that it may have met/,
    (world, view) => {
      world.history.counted(world.callStarted(view, "one more"), 1);
    },
  ],
  [
    "is over, and the next one is begun by who knew it",
    /^latch: k: a latch of 1000 ms began that nobody asked for/,
    (world, view) => {
      world.now = 1_100;
      world.setSnapshot(undefined);
      world.callStarted(view, "one more");
      world.setSnapshot({});
    },
  ],
  [
    "is over, and the next one is counted down by who knew it",
    /^count: k: 1 counted where 0 may have/,
    (world, view) => {
      world.now = 1_100;
      world.setSnapshot(undefined);
      world.callStarted(world.view(2));
      world.setSnapshot({});
      world.callStarted(view, "one more");
      world.setSnapshot({ remaining: 2 });
    },
  ],
  [
    "is over, and the next one lets go who knew it",
    /^latch: k: client 1, .* was let go, and no latch that it may have met is open/,
    (world, view) => {
      world.now = 1_100;
      world.setSnapshot(undefined);
      world.setSnapshot(undefined);
      const waiting = world.callStarted(view);
      world.open();
      world.history.opened(waiting);
    },
  ],
];

test.each(seededDefects)("a latch that opened and %s is found", (_, found, spoil) => {
  const world = new LatchFixture();
  const view = world.open();
  expect(world.found).toEqual([]);
  spoil(world, view);
  expect(world.found).toEqual([expect.stringMatching(found)]);
});

test("an attempt that counts twice is found, be it a repeat or one that comes too late", () => {
  const world = new LatchFixture();
  const view = world.view();
  world.history.counted(world.callStarted(view, "one"), 2); // answered before it is seen
  expect(world.found).toHaveLength(1);

  const other = new LatchFixture();
  const own = other.view();
  const first = other.callStarted(own, "one");
  other.setSnapshot({ remaining: 2 });
  other.history.counted(first, 2);
  other.callStarted(other.view(2), "one");
  other.setSnapshot({ remaining: 1 });
  expect(other.found).toEqual(["count: k: 1 counted where 0 may have"]);
  const failed = other.callStarted(own, "two");
  other.history.refused(failed);
  other.now += latestMs + 1;
  other.setSnapshot({ remaining: 0 });
  expect(other.found).toHaveLength(2);
});

test("who waits for what is open, or over, and is not told is found once", () => {
  const world = new LatchFixture(100);
  const view = world.view();
  world.callStarted(view);
  const counting = ["one", "two", "three"].map((attempt) => world.callStarted(view, attempt));
  world.setSnapshot({ remaining: 0 });
  counting.forEach((call) => {
    world.history.counted(call, 0);
  });
  world.now += 100;
  world.history.check();
  expect(world.found).toEqual([]);
  world.setSnapshot({});
  world.setSnapshot({});
  expect(world.found).toEqual([
    expect.stringMatching(/^progress: k: client 1, .* waits for 101 ms after the end$/),
  ]);
});

test("who waits is let go before the last count: it is found", () => {
  const world = new LatchFixture();
  const view = world.view();
  const waiting = world.callStarted(view);
  world.setSnapshot({});
  world.history.opened(waiting);
  expect(world.found).toEqual([expect.stringMatching(/^latch: k: client 1, .* was let go, and no latch/)]);
});
