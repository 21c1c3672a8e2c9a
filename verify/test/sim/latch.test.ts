import { expect, test } from "vitest";

import { Findings } from "../../sim/judge/findings.ts";
import { LatchHistory, type Call, type View } from "../../sim/judge/latch-history.ts";
import type { Seen } from "../../sim/judge/latch-snapshot.ts";

const latestMs = 500;
const ttlMs = 1_000;

/** An engine that can be made to have anything, and what is found then. */
class Doctored {
  now = 0;
  seen: Seen | undefined;
  readonly findings: Findings = new Findings(() => this.now);
  readonly history: LatchHistory;

  constructor(patienceMs = Infinity) {
    const sight = { now: () => this.now, read: () => this.seen };
    const patience = (): { since: number; ms: number } => ({ since: 0, ms: patienceMs });
    this.history = new LatchHistory(this.findings, "k", sight, {
      latestMs,
      isKept: true,
      isTidy: true,
      patience,
    });
  }

  get found(): readonly string[] {
    return this.findings.all.map(({ check, text }) => `${check}: ${text}`);
  }

  view(client = 1): View {
    return { client, count: 3, ttlMs, since: this.now, lives: undefined };
  }

  asks(view: View, attempt?: string): Call {
    return this.history.asks(view, attempt);
  }

  /** The engine has this a ms later. */
  has(change: Partial<Seen> | undefined): void {
    this.now += 1;
    const fresh = { id: `born at ${this.now}`, total: 3, left: 3, ends: this.now + ttlMs };
    this.seen = change && { ...(this.seen ?? fresh), ...change };
    this.history.look();
  }

  /** It is counted down by three callers, and open. */
  open(): View {
    const view = this.view();
    for (const left of [2, 1, 0]) {
      const call = this.asks(view, `attempt ${left}`);
      this.has({ left });
      this.history.counted(call, left);
    }
    return view;
  }
}

test("a latch that is counted down, opens and ends is as it should be", () => {
  const world = new Doctored();
  const view = world.open();
  const waiting = world.asks(view);
  world.history.opened(waiting);
  const late = world.asks(view, "another");
  world.history.counted(late, 0);
  world.now = 1_100;
  world.has(undefined);
  world.history.expired(world.asks(view));
  expect(world.found).toEqual([]);
});

type Spoiling = readonly [what: string, found: RegExp, spoil: (world: Doctored, view: View) => void];

const spoilt: readonly Spoiling[] = [
  [
    "closes again",
    /^latch: k: a latch was 0 of 3 until \d+, and is 1 of 3/,
    (world) => {
      world.has({ left: 1 });
    },
  ],
  [
    "ends at another time",
    /^latch: k: a latch was 0 of 3 until 1001, and is 0 of 3 until 5000/,
    (world) => {
      world.has({ ends: 5_000 });
    },
  ],
  [
    "is gone before its time",
    /^latch: k: a latch is gone \d+ ms before its end/,
    (world) => {
      world.has(undefined);
    },
  ],
  [
    "is told to be over",
    /^latch: k: client 1, .* was told that its latch is over, and none is/,
    (world, view) => {
      world.history.expired(world.asks(view));
    },
  ],
  [
    "is told to lack one",
    /^count: k: client 1, .* was told that 1 are left, as of no latch that it may have met/,
    (world, view) => {
      world.history.counted(world.asks(view, "one more"), 1);
    },
  ],
  [
    "is over, and the next one is begun by who knew it",
    /^latch: k: a latch of 1000 ms began that nobody asked for/,
    (world, view) => {
      world.now = 1_100;
      world.has(undefined);
      world.asks(view, "one more");
      world.has({});
    },
  ],
  [
    "is over, and the next one is counted down by who knew it",
    /^count: k: 1 counted where 0 may have/,
    (world, view) => {
      world.now = 1_100;
      world.has(undefined);
      world.asks(world.view(2));
      world.has({});
      world.asks(view, "one more");
      world.has({ left: 2 });
    },
  ],
  [
    "is over, and the next one lets go who knew it",
    /^latch: k: client 1, .* was let go, and no latch that it may have met is open/,
    (world, view) => {
      world.now = 1_100;
      world.has(undefined);
      world.has(undefined);
      const waiting = world.asks(view);
      world.open();
      world.history.opened(waiting);
    },
  ],
];

test.each(spoilt)("a latch that opened and %s is found", (_, found, spoil) => {
  const world = new Doctored();
  const view = world.open();
  expect(world.found).toEqual([]);
  spoil(world, view);
  expect(world.found).toEqual([expect.stringMatching(found)]);
});

test("an attempt that counts twice is found, be it a repeat or one that comes too late", () => {
  const world = new Doctored();
  const view = world.view();
  world.history.counted(world.asks(view, "one"), 2); // answered before it is seen
  expect(world.found).toHaveLength(1);

  const other = new Doctored();
  const own = other.view();
  const first = other.asks(own, "one");
  other.has({ left: 2 });
  other.history.counted(first, 2);
  other.asks(other.view(2), "one");
  other.has({ left: 1 });
  expect(other.found).toEqual(["count: k: 1 counted where 0 may have"]);
  const failed = other.asks(own, "two");
  other.history.refused(failed);
  other.now += latestMs + 1;
  other.has({ left: 0 });
  expect(other.found).toHaveLength(2);
});

test("who waits for what is open, or over, and is not told is found once", () => {
  const world = new Doctored(100);
  const view = world.view();
  world.asks(view);
  const counting = ["one", "two", "three"].map((attempt) => world.asks(view, attempt));
  world.has({ left: 0 });
  counting.forEach((call) => {
    world.history.counted(call, 0);
  });
  world.now += 100;
  world.history.look();
  expect(world.found).toEqual([]);
  world.has({});
  world.has({});
  expect(world.found).toEqual([
    expect.stringMatching(/^progress: k: client 1, .* waits for 101 ms after the end$/),
  ]);
});

test("who waits is let go before the last count: it is found", () => {
  const world = new Doctored();
  const view = world.view();
  const waiting = world.asks(view);
  world.has({});
  world.history.opened(waiting);
  expect(world.found).toEqual([expect.stringMatching(/^latch: k: client 1, .* was let go, and no latch/)]);
});
