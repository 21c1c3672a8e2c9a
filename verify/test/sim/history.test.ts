import { beforeEach, expect, test } from "vitest";

import { unsyncedAheadMs } from "../../sim/judge/arrivals.ts";
import { History } from "../../sim/judge/history.ts";
import type { WatchedLease } from "../../sim/judge/holdings.ts";
import type { Schedule, Step, Use } from "../../sim/plan/schedule.ts";
import { toleranceMs } from "../../sim/judge/queue-order.ts";
import { attemptKey, type SharedGroup } from "../../sim/judge/shared-group.ts";
import type { WaitingRequest } from "../../sim/judge/waiting-request.ts";

let now: number;
let isRunning: boolean;
let hadFault: boolean;

beforeEach(() => {
  [now, isRunning, hadFault] = [0, true, false];
});

/** @param offsetsMs of the nodes' clocks; none: it is one server */
function history(
  weather: Schedule["scenario"] = "calm",
  steps: readonly Step[] = [],
  offsetsMs: readonly number[] = [],
): History {
  const nodes = offsetsMs.map((offsetMs) => ({ offsetMs, rate: 1 }));
  const engine = nodes.length > 0 ? "quorum" : "server";
  const clients = [1, 1, 1, 1.01].map((rate) => ({ rate }));
  const schedule = { scenario: weather, steps, engine, nodes, clients, kind: "mutex" } as unknown as Schedule;
  return new History(
    () => now,
    schedule,
    () => ({ isRunning, hadFault }),
  );
}

const use: Use = {
  kind: "acquire",
  client: 0,
  key: "k",
  ttlMs: 1_000,
  waitMs: null,
  renew: false,
  holdMs: 0,
};

/** A lease on "k" that ends when it is told to. */
class FakeLease implements WatchedLease {
  readonly key = "k";
  readonly fencingToken: bigint;
  leftMs = 1_000;
  readonly #controller = new AbortController();

  constructor(fencingToken: number) {
    this.fencingToken = BigInt(fencingToken);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  remainingMs(): number {
    return this.leftMs;
  }

  end({ isTold: isReported }: { isTold: boolean }): void {
    this.leftMs = 0;
    if (isReported) {
      this.#controller.abort();
    }
  }
}

function checkNames({ findings }: History): string[] {
  return findings.list.map(({ check }) => check);
}

/** Asks, and has it at once. */
function grant(to: History, client: number, lease: WatchedLease, attemptId?: string): void {
  const request = to.requestStarted(
    { ...use, client, ...(attemptId === undefined ? {} : { attemptId }) },
    false,
  );
  const sharing: SharedGroup | undefined =
    attemptId === undefined ? undefined : { name: attemptKey(client, attemptId) };
  to.granted(request, lease, sharing);
  to.requestSettled(request);
}

test("two valid leases at once are found", () => {
  const watched = history();
  grant(watched, 0, new FakeLease(1));
  expect(checkNames(watched)).toEqual([]);
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("of two leases one is over, given back, broken, or on the same grant", () => {
  for (const ends of [
    (first: FakeLease) => {
      first.end({ isTold: true });
    },
    (first: FakeLease, watched: History) => {
      watched.released(first);
    },
    (_: FakeLease, watched: History) => {
      watched.operator.breaks("k", 1n, 0);
    },
  ]) {
    const watched = history();
    const first = new FakeLease(1);
    grant(watched, 0, first);
    ends(first, watched);
    grant(watched, 1, new FakeLease(3));
    expect(checkNames(watched)).toEqual([]);
  }
  const named = history();
  grant(named, 0, new FakeLease(1), "name");
  grant(named, 0, new FakeLease(1), "name");
  expect(checkNames(named)).toEqual([]);
  grant(named, 1, new FakeLease(2), "name"); // another process is a stranger
  expect(checkNames(named)).toEqual(["exclusion"]);
});

test("who hears of a grant when an operator has ended it does not hold it", () => {
  const watched = history();
  watched.operator.breaks("k", 1n, 0);
  grant(watched, 0, new FakeLease(30));
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual([]);
});

test("one server that forgets is not asked for exclusion beside what it forgot, but of what it granted since", () => {
  const watched = history("storm");
  grant(watched, 0, new FakeLease(1));
  now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual([]);
  grant(watched, 2, new FakeLease(3));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("a quorum of which one node forgets is asked for exclusion all the same", () => {
  const watched = history("storm", [], [0, 0, 0]);
  grant(watched, 0, new FakeLease(1));
  now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test.each([1, 2])("a number that does not rise is found: %i after 2", (number) => {
  const watched = history();
  const first = new FakeLease(2);
  grant(watched, 0, first);
  watched.released(first);
  grant(watched, 1, new FakeLease(number));
  expect(checkNames(watched)).toEqual(["fencing"]);
});

const terms = { weight: 2 ** 31, ttlMs: 1_000 };

test("an adopted lease with another number is found", () => {
  const watched = history();
  const given = new FakeLease(1);
  grant(watched, 0, given);
  watched.transferred(given, 100);
  watched.adopted(1, new FakeLease(1), 1n, terms);
  expect(checkNames(watched)).toEqual([]);
  watched.adopted(1, new FakeLease(2), 1n, terms);
  expect(checkNames(watched)).toContain("fencing");
});

/** Somebody known for long asks, and `laterMs` after it somebody else, who is granted. */
function overtake(
  watched: History,
  laterMs: number,
  clients: readonly [number, number],
  inLine: boolean,
): WaitingRequest {
  for (const client of clients) {
    watched.requestSettled(watched.requestStarted({ ...use, client, key: "other" }, false));
  }
  now += 1_000;
  const earlier = watched.requestStarted({ ...use, client: clients[0] }, inLine);
  now += laterMs;
  watched.granted(watched.requestStarted({ ...use, client: clients[1] }, inLine), new FakeLease(7));
  return earlier;
}

test.each(["calm", "storm"] as const)("in the same line nobody is overtaken, in a %s", (weather) => {
  const watched = history(weather);
  overtake(watched, 0, [0, 0], true);
  now += 1;
  watched.check();
  expect(checkNames(watched)).toEqual(["order"]);
});

test("who waits for longer than the tolerance is not overtaken by another process where nothing is wrong", () => {
  const calm = history();
  overtake(calm, toleranceMs + 1, [0, 1], false);
  now += 1;
  calm.check();
  expect(checkNames(calm)).toEqual(["order"]);

  const close = history();
  overtake(close, toleranceMs - 1, [0, 1], false);
  now += 1;
  close.check();
  expect(checkNames(close)).toEqual([]);
});

test.each([
  { what: "nor in a storm", disturbed: [], found: ["order"] },
  { what: "but where a fault disturbs him", disturbed: [0], found: [] },
  { what: "but by whom a fault disturbs", disturbed: [1], found: [] },
  { what: "nor where a fault disturbs another", disturbed: [2], found: ["order"] },
])("who waits is not overtaken, $what", ({ disturbed, found }) => {
  const storm = history("storm");
  disturbed.forEach((client) => {
    storm.disturbances.begin(client, 2_000);
  });
  overtake(storm, toleranceMs + 1, [0, 1], false);
  now += 1;
  storm.check();
  expect(checkNames(storm)).toEqual(found);
});

test("whose first request on a quorum may know the clocks of a majority only goes before others by as much as these are behind", () => {
  expect(unsyncedAheadMs([0, -200, 0])).toBe(100);
  expect(unsyncedAheadMs([10, -200, 0, 30])).toBe(5);
  expect(unsyncedAheadMs([0, 0, 0])).toBe(0);
  for (const [laterMs, knownForMs, found] of [
    [toleranceMs + 99, 0, []],
    [toleranceMs + 101, 0, ["order"]],
    [toleranceMs + 99, 11, ["order"]],
  ] as const) {
    const watched = history("calm", [], [0, -200, 0]);
    watched.requestSettled(watched.requestStarted(use, false));
    now += 1_000;
    watched.requestStarted(use, false);
    now += laterMs - knownForMs;
    watched.requestSettled(watched.requestStarted({ ...use, client: 1, key: "other" }, false));
    now += knownForMs;
    watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(7));
    now += 1;
    watched.check();
    expect(checkNames(watched)).toEqual(found);
  }
});

test("a call behind an attempt of a client that no server knew yet waits without a place, too", () => {
  for (const [attemptId, found] of [
    ["first", []],
    [undefined, ["order"]],
  ] as const) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, client: 1, key: "other" }, false));
    const meeting = watched.requestStarted({ ...use, ...(attemptId && { attemptId }) }, true);
    now += 1_000;
    if (attemptId === undefined) {
      watched.requestSettled(meeting);
    }
    watched.requestStarted(use, true);
    now += toleranceMs + 1;
    watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(7));
    now += 1;
    watched.check();
    expect(checkNames(watched)).toEqual(found);
  }
});

test("a waiter has its place until its own deadline, although the clocks have drifted apart", () => {
  for (const waitMs of [10, 80]) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, client: 3, key: "other" }, false));
    now += 5_000;
    watched.requestStarted({ ...use, client: 3, key: "other" }, false);
    watched.requestStarted({ ...use, client: 3, waitMs }, false);
    watched.granted(watched.requestStarted({ ...use, client: 3 }, false), new FakeLease(8 + now));
    now += 1;
    watched.check();
    expect(checkNames(watched).filter((check) => check === "order")).toEqual(["order"]);
  }
});

test("a client is judged by its place as far as its clock may have drifted since its last answer", () => {
  for (const [laterMs, found] of [
    [toleranceMs + 9, []],
    [toleranceMs + 11, ["order"]],
  ] as const) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, key: "other" }, false));
    watched.requestSettled(watched.requestStarted({ ...use, client: 3, key: "other" }, false));
    now += 1_000 - laterMs;
    watched.requestStarted(use, false);
    now += laterMs;
    watched.granted(watched.requestStarted({ ...use, client: 3 }, false), new FakeLease(7));
    now += 1;
    watched.check();
    expect(checkNames(watched)).toEqual(found);
  }
});

test("who leaves at the same moment is not overtaken", () => {
  const watched = history();
  const earlier = overtake(watched, 500, [0, 1], false);
  watched.requestSettled(earlier);
  now += 1;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
});

test.each([
  { what: "by a clock that is right", client: 0, afterMs: 505, found: [] },
  { what: "by a clock that is fast", client: 3, afterMs: 500, found: [] },
  { what: "not a millisecond before", client: 0, afterMs: 504, found: ["order"] },
])("who has waited for as long as it wanted is not overtaken: $what", ({ client, afterMs, found }) => {
  const watched = history();
  watched.requestSettled(watched.requestStarted({ ...use, client }, false));
  now = 1_000;
  watched.requestStarted({ ...use, client, waitMs: 505 }, false);
  now += afterMs;
  watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(1));
  now += 1;
  watched.check();
  expect(checkNames(watched)).toEqual(found);
});

test("a process may hand a lease on sixteen times while others wait, and not more often", () => {
  const watched = history();
  watched.requestSettled(watched.requestStarted({ ...use, client: 1 }, false));
  now = 1_000;
  watched.requestStarted({ ...use, client: 1 }, false);
  for (let number = 1; number <= 18; number += 1) {
    now += 100;
    const lease = new FakeLease(number);
    const request = {
      client: 0,
      keys: ["k"],
      weight: 2 ** 31,
      isShared: false,
      ttlMs: 1_000,
      since: number === 1 ? 0 : now,
      arrivedFrom: number === 1 ? 0 : now,
      arrivedTo: now,
      judgedSince: now,
      serial: 0,
      isInLocalQueue: true,
      usesLocalQueue: true,
      mayWaitInMemory: false,
      headSince: Infinity,
      isQueued: true,
      isDequeued: false,
      until: Infinity,
      wasGranted: false,
      isSettled: false,
    };
    watched.granted(request, lease);
    watched.released(lease);
    expect(checkNames(watched)).toEqual([]);
  }
  now += 1;
  watched.check();
  expect(checkNames(watched)).toEqual(["order"]);
});

test("a free lock with somebody waiting is found after the patience, and only then", () => {
  const watched = history();
  watched.setFreeBound(100);
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  watched.requestStarted({ ...use, client: 1 }, false);
  now = 500;
  watched.check();
  watched.released(lease);
  watched.check();
  now = 600;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  now = 601;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
});

test("a free lock may be left to expire, and nobody has to want it", () => {
  const watched = history();
  watched.setFreeBound(100);
  watched.requestStarted(use, false);
  watched.reserve({ key: "k" }, 400);
  now = 400;
  watched.check();
  now = 501;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
  const unwanted = history();
  unwanted.setFreeBound(100);
  grant(unwanted, 0, new FakeLease(1));
  now = 5_000;
  unwanted.check();
  expect(checkNames(unwanted)).toEqual([]);
});

test("a dead client's grant is left to its TTL, also while its downgrade is under way", () => {
  for (const isDowngrading of [false, true]) {
    now = 0;
    const watched = history("process-death");
    watched.setFreeBound(100);
    const writer = new FakeLease(1);
    grant(watched, 0, writer);
    watched.requestStarted({ ...use, client: 1, waitMs: 5_000 }, false);
    if (isDowngrading) {
      watched.startsDowngrade(writer);
      writer.leftMs = 0;
    }
    watched.clientDied(0);
    writer.end({ isTold: true });
    for (now of [0, 1_000, 1_100]) {
      watched.check();
    }
    expect(checkNames(watched)).toEqual([]);
    now = 1_101;
    watched.check();
    expect(checkNames(watched)).toEqual(["progress"]);
  }
});

test("who is not answered when its time is over is found", () => {
  const watched = history("storm");
  watched.requestStarted({ ...use, waitMs: 50 }, false);
  now = 350;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  now = 351;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
});

test("a loss that is not told in time is found; to who is frozen it is told later", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  isRunning = false;
  watched.check();
  now = 5_000;
  watched.check();
  isRunning = true;
  watched.check();
  now = 5_001;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  now = 5_002;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("a lease that seemed to be over for a moment is told to be lost in time when it is", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  for (const [moment, leftMs] of [
    [0, 0],
    [1, 50],
    [50, 0],
    [51, 0],
  ] as const) {
    now = moment;
    lease.leftMs = leftMs;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  now = 52;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("whose clocks were disturbed is told within the pulse", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  hadFault = true;
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  for (const moment of [0, 1_050]) {
    now = moment;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  now = 1_051;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("a release that says no is a failure but of what a node forgot, and a complaint only where nothing goes wrong", () => {
  const watched = history("storm");
  watched.failUnlessFaulty("refusal", "trouble");
  expect(checkNames(watched)).toEqual([]);
  const [before, behind] = [new FakeLease(1), new FakeLease(60)];
  grant(watched, 0, before);
  watched.released(before);
  watched.releaseRefused(before, "lost");
  expect(checkNames(watched)).toEqual(["release"]);

  now = 1;
  watched.dataLost();
  watched.releaseRefused(before, "lost, as a node forgot it");
  expect(checkNames(watched)).toEqual(["release"]);
  now = 2;
  grant(watched, 0, behind);
  watched.releaseRefused(behind, "lost");
  expect(checkNames(watched)).toEqual(["release", "release"]);

  const calm = history();
  calm.failUnlessFaulty("refusal", "trouble");
  expect(checkNames(calm)).toEqual(["refusal"]);
});

test("an operator who was told another number of a client's grant ends that, and no other client's", () => {
  for (const [client, found] of [
    [0, []],
    [1, ["exclusion"]],
  ] as const) {
    const watched = history();
    grant(watched, 0, new FakeLease(1));
    watched.operator.breaks("k", 30n, client);
    grant(watched, 1, new FakeLease(60));
    expect(checkNames(watched)).toEqual(found);
  }
});
