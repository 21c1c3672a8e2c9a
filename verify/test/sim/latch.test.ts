import { expect, test } from "vitest";

import { Findings } from "../../sim/judge/findings.ts";
import { type LatchCall, type LatchHandle, LatchHistory } from "../../sim/judge/latch-history.ts";
import type { LatchSnapshot } from "../../sim/judge/latch-watch.ts";

const latestMs = 500;
const ttlMs = 1_000;

/** An engine whose latch the test sets, and the judge of that latch. */
class LatchFixture {
  now = 0;
  snapshot: LatchSnapshot | undefined;
  readonly findings: Findings = new Findings(() => this.now);
  readonly history: LatchHistory;

  constructor(openBoundMs = Infinity) {
    const observer = { now: () => this.now, read: () => this.snapshot };
    const openBound = (): { since: number; ms: number } => ({ since: 0, ms: openBoundMs });
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

  /** Changes the latch of the engine one ms later. */
  setSnapshot(change: Partial<LatchSnapshot> | undefined): void {
    this.now += 1;
    const fresh = { id: `born at ${this.now}`, total: 3, remaining: 3, endsAt: this.now + ttlMs };
    this.snapshot = change && { ...(this.snapshot ?? fresh), ...change };
    this.history.check();
  }

  /** Three callers count the latch down, so that it is open. */
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

test("no check fails for a latch that is counted down, opens and expires", () => {
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
    /^latch: k: a latch changed from 0 of 3 until \d+ to 1 of 3/,
    (world) => {
      world.setSnapshot({ remaining: 1 });
    },
  ],
  [
    "expires at another time",
    /^latch: k: a latch changed from 0 of 3 until 1001 to 0 of 3 until 5000/,
    (world) => {
      world.setSnapshot({ endsAt: 5_000 });
    },
  ],
  [
    "ends before its expiry",
    /^latch: k: a latch ended \d+ ms before its expiry/,
    (world) => {
      world.setSnapshot(undefined);
    },
  ],
  [
    "is reported as expired",
    /^latch: k: client 1, .* failed with an expired latch, but no latch of its object has expired/,
    (world, view) => {
      world.history.expired(world.callStarted(view));
    },
  ],
  [
    "is reported to lack one count",
    /^count: k: client 1, .* got the remaining count 1, which fits no latch of its object/,
    (world, view) => {
      world.history.counted(world.callStarted(view, "one more"), 1);
    },
  ],
  [
    "expires before one of its callers creates the next latch",
    /^latch: k: a latch of 1000 ms was created without a call for it/,
    (world, view) => {
      world.now = 1_100;
      world.setSnapshot(undefined);
      world.callStarted(view, "one more");
      world.setSnapshot({});
    },
  ],
  [
    "expires before one of its callers counts down the next latch",
    /^count: k: the count fell by 1, with 0 possible attempts/,
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
    "expires before the next latch ends the wait of one of its callers",
    /^latch: k: client 1, .* returned from its wait, but no latch of its object is open/,
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

test.each(seededDefects)("the judge finds a latch that opens and then %s", (_, found, spoil) => {
  const world = new LatchFixture();
  const view = world.open();
  expect(world.found).toEqual([]);
  spoil(world, view);
  expect(world.found).toEqual([expect.stringMatching(found)]);
});

test("the judge finds an attempt that counts twice, by a repeat or by a late request", () => {
  const world = new LatchFixture();
  const view = world.view();
  world.history.counted(world.callStarted(view, "one"), 2); // the reply arrives before the engine has counted
  expect(world.found).toHaveLength(1);

  const other = new LatchFixture();
  const own = other.view();
  const first = other.callStarted(own, "one");
  other.setSnapshot({ remaining: 2 });
  other.history.counted(first, 2);
  other.callStarted(other.view(2), "one");
  other.setSnapshot({ remaining: 1 });
  expect(other.found).toEqual(["count: k: the count fell by 1, with 0 possible attempts"]);
  const failed = other.callStarted(own, "two");
  other.history.refused(failed);
  other.now += latestMs + 1;
  other.setSnapshot({ remaining: 0 });
  expect(other.found).toHaveLength(2);
});

test("the judge reports once a wait that outlasts the opening or the expiry of its latch", () => {
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
    expect.stringMatching(/^progress: k: client 1, .* still waits 101 ms after the end$/),
  ]);
});

test("the judge finds a wait that returns before the last count", () => {
  const world = new LatchFixture();
  const view = world.view();
  const waiting = world.callStarted(view);
  world.setSnapshot({});
  world.history.opened(waiting);
  expect(world.found).toEqual([
    expect.stringMatching(/^latch: k: client 1, .* returned from its wait, but no latch/),
  ]);
});
