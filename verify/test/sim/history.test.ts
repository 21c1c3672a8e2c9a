import { beforeEach, expect, test } from "vitest";

import { attemptOf, History } from "../../sim/judge/history.ts";
import type { Sharing, WatchedLease } from "../../sim/judge/holdings.ts";
import type { Schedule, Step, Use } from "../../sim/plan/schedule.ts";
import { strangersAheadMs, toleranceMs, type Asking } from "../../sim/judge/queue-order.ts";

let now: number;
let isRunning: boolean;
let wasDisturbed: boolean;

beforeEach(() => {
  [now, isRunning, wasDisturbed] = [0, true, false];
});

/** @param offsetsMs of the nodes' clocks; none: it is one server */
function history(
  weather: Schedule["weather"] = "calm",
  steps: readonly Step[] = [],
  offsetsMs: readonly number[] = [],
): History {
  const nodes = offsetsMs.map((offsetMs) => ({ offsetMs, rate: 1 }));
  const engine = nodes.length > 0 ? "quorum" : "server";
  const clients = [1, 1, 1, 1.01].map((rate) => ({ rate }));
  const schedule = { weather, steps, engine, nodes, clients, kind: "mutex" } as unknown as Schedule;
  return new History(
    () => now,
    schedule,
    () => ({ isRunning, wasDisturbed }),
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
class PlantedLease implements WatchedLease {
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

  end({ isTold }: { isTold: boolean }): void {
    this.leftMs = 0;
    if (isTold) {
      this.#controller.abort();
    }
  }
}

function checksOf({ findings }: History): string[] {
  return findings.all.map(({ check }) => check);
}

/** Asks, and has it at once. */
function grant(to: History, client: number, lease: WatchedLease, attemptId?: string): void {
  const asking = to.asks({ ...use, client, ...(attemptId === undefined ? {} : { attemptId }) }, false);
  const sharing: Sharing | undefined =
    attemptId === undefined ? undefined : { name: attemptOf(client, attemptId) };
  to.granted(asking, lease, sharing);
  to.answered(asking);
}

test("two valid leases at once are found", () => {
  const watched = history();
  grant(watched, 0, new PlantedLease(1));
  expect(checksOf(watched)).toEqual([]);
  grant(watched, 1, new PlantedLease(2));
  expect(checksOf(watched)).toEqual(["exclusion"]);
});

test("of two leases one is over, given back, broken, or on the same grant", () => {
  for (const ends of [
    (first: PlantedLease) => {
      first.end({ isTold: true });
    },
    (first: PlantedLease, watched: History) => {
      watched.released(first);
    },
    (_: PlantedLease, watched: History) => {
      watched.breaks("k", 1n, 0);
    },
  ]) {
    const watched = history();
    const first = new PlantedLease(1);
    grant(watched, 0, first);
    ends(first, watched);
    grant(watched, 1, new PlantedLease(3));
    expect(checksOf(watched)).toEqual([]);
  }
  const named = history();
  grant(named, 0, new PlantedLease(1), "name");
  grant(named, 0, new PlantedLease(1), "name");
  expect(checksOf(named)).toEqual([]);
  grant(named, 1, new PlantedLease(2), "name"); // another process is a stranger
  expect(checksOf(named)).toEqual(["exclusion"]);
});

test("who hears of a grant when an operator has ended it does not hold it", () => {
  const watched = history();
  watched.breaks("k", 1n, 0);
  grant(watched, 0, new PlantedLease(30));
  grant(watched, 1, new PlantedLease(2));
  expect(checksOf(watched)).toEqual([]);
});

test("one server that forgets is not asked for exclusion beside what it forgot, but of what it granted since", () => {
  const watched = history("storm");
  grant(watched, 0, new PlantedLease(1));
  now = 1;
  watched.forgets();
  grant(watched, 1, new PlantedLease(2));
  expect(checksOf(watched)).toEqual([]);
  grant(watched, 2, new PlantedLease(3));
  expect(checksOf(watched)).toEqual(["exclusion"]);
});

test("a quorum of which one node forgets is asked for exclusion all the same", () => {
  const watched = history("storm", [], [0, 0, 0]);
  grant(watched, 0, new PlantedLease(1));
  now = 1;
  watched.forgets();
  grant(watched, 1, new PlantedLease(2));
  expect(checksOf(watched)).toEqual(["exclusion"]);
});

test.each([1, 2])("a number that does not rise is found: %i after 2", (number) => {
  const watched = history();
  const first = new PlantedLease(2);
  grant(watched, 0, first);
  watched.released(first);
  grant(watched, 1, new PlantedLease(number));
  expect(checksOf(watched)).toEqual(["fencing"]);
});

const terms = { weight: 2 ** 31, ttlMs: 1_000 };

test("an adopted lease with another number is found", () => {
  const watched = history();
  const given = new PlantedLease(1);
  grant(watched, 0, given);
  watched.transferred(given, 100);
  watched.adopted(1, new PlantedLease(1), 1n, terms);
  expect(checksOf(watched)).toEqual([]);
  watched.adopted(1, new PlantedLease(2), 1n, terms);
  expect(checksOf(watched)).toContain("fencing");
});

/** Somebody known for long asks, and `laterMs` after it somebody else, who is granted. */
function overtake(
  watched: History,
  laterMs: number,
  clients: readonly [number, number],
  inLine: boolean,
): Asking {
  for (const client of clients) {
    watched.answered(watched.asks({ ...use, client, key: "other" }, false));
  }
  now += 1_000;
  const earlier = watched.asks({ ...use, client: clients[0] }, inLine);
  now += laterMs;
  watched.granted(watched.asks({ ...use, client: clients[1] }, inLine), new PlantedLease(7));
  return earlier;
}

test.each(["calm", "storm"] as const)("in the same line nobody is overtaken, in a %s", (weather) => {
  const watched = history(weather);
  overtake(watched, 0, [0, 0], true);
  now += 1;
  watched.look();
  expect(checksOf(watched)).toEqual(["order"]);
});

test("who waits for longer than the tolerance is not overtaken by another process where nothing is wrong", () => {
  const calm = history();
  overtake(calm, toleranceMs + 1, [0, 1], false);
  now += 1;
  calm.look();
  expect(checksOf(calm)).toEqual(["order"]);

  const close = history();
  overtake(close, toleranceMs - 1, [0, 1], false);
  now += 1;
  close.look();
  expect(checksOf(close)).toEqual([]);
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
  storm.look();
  expect(checksOf(storm)).toEqual(found);
});

test("whose first request on a quorum may know the clocks of a majority only goes before others by as much as these are behind", () => {
  expect(strangersAheadMs([0, -200, 0])).toBe(100);
  expect(strangersAheadMs([10, -200, 0, 30])).toBe(5);
  expect(strangersAheadMs([0, 0, 0])).toBe(0);
  for (const [laterMs, knownForMs, found] of [
    [toleranceMs + 99, 0, []],
    [toleranceMs + 101, 0, ["order"]],
    [toleranceMs + 99, 11, ["order"]],
  ] as const) {
    const watched = history("calm", [], [0, -200, 0]);
    watched.answered(watched.asks(use, false));
    now += 1_000;
    watched.asks(use, false);
    now += laterMs - knownForMs;
    watched.answered(watched.asks({ ...use, client: 1, key: "other" }, false));
    now += knownForMs;
    watched.granted(watched.asks({ ...use, client: 1 }, false), new PlantedLease(7));
    now += 1;
    watched.look();
    expect(checksOf(watched)).toEqual(found);
  }
});

test("a call behind an attempt of a client that no server knew yet waits without a place, too", () => {
  for (const [attemptId, found] of [
    ["first", []],
    [undefined, ["order"]],
  ] as const) {
    const watched = history();
    watched.answered(watched.asks({ ...use, client: 1, key: "other" }, false));
    const meeting = watched.asks({ ...use, ...(attemptId && { attemptId }) }, true);
    now += 1_000;
    if (attemptId === undefined) {
      watched.answered(meeting);
    }
    watched.asks(use, true);
    now += toleranceMs + 1;
    watched.granted(watched.asks({ ...use, client: 1 }, false), new PlantedLease(7));
    now += 1;
    watched.look();
    expect(checksOf(watched)).toEqual(found);
  }
});

test("calls that begin in one moment all have the estimate of the last answer before it", () => {
  for (const [waitMs, found] of [
    [10, []], // less than the clocks drift apart in 5 s: the server may think that its time is over
    [80, ["order"]],
  ] as const) {
    const watched = history();
    watched.answered(watched.asks({ ...use, client: 3, key: "other" }, false));
    now += 5_000;
    watched.asks({ ...use, client: 3, key: "other" }, false);
    watched.asks({ ...use, client: 3, waitMs }, false);
    watched.granted(watched.asks({ ...use, client: 3 }, false), new PlantedLease(8 + now));
    now += 1;
    watched.look();
    expect(checksOf(watched).filter((check) => check === "order")).toEqual(found);
  }
});

test("a client is judged by its place as far as its clock may have drifted since its last answer", () => {
  for (const [laterMs, found] of [
    [toleranceMs + 9, []],
    [toleranceMs + 11, ["order"]],
  ] as const) {
    const watched = history();
    watched.answered(watched.asks({ ...use, key: "other" }, false));
    watched.answered(watched.asks({ ...use, client: 3, key: "other" }, false));
    now += 1_000 - laterMs;
    watched.asks(use, false);
    now += laterMs;
    watched.granted(watched.asks({ ...use, client: 3 }, false), new PlantedLease(7));
    now += 1;
    watched.look();
    expect(checksOf(watched)).toEqual(found);
  }
});

test("who leaves at the same moment is not overtaken", () => {
  const watched = history();
  const earlier = overtake(watched, 500, [0, 1], false);
  watched.answered(earlier);
  now += 1;
  watched.look();
  expect(checksOf(watched)).toEqual([]);
});

test.each([
  { what: "by a clock that is right", client: 0, afterMs: 505, found: [] },
  { what: "by a clock that is fast", client: 3, afterMs: 500, found: [] },
  { what: "not a millisecond before", client: 0, afterMs: 504, found: ["order"] },
])("who has waited for as long as it wanted is not overtaken: $what", ({ client, afterMs, found }) => {
  const watched = history();
  watched.answered(watched.asks({ ...use, client }, false));
  now = 1_000;
  watched.asks({ ...use, client, waitMs: 505 }, false);
  now += afterMs;
  watched.granted(watched.asks({ ...use, client: 1 }, false), new PlantedLease(1));
  now += 1;
  watched.look();
  expect(checksOf(watched)).toEqual(found);
});

test("a process may hand a lease on sixteen times while others wait, and not more often", () => {
  const watched = history();
  watched.answered(watched.asks({ ...use, client: 1 }, false));
  now = 1_000;
  watched.asks({ ...use, client: 1 }, false);
  for (let number = 1; number <= 18; number += 1) {
    now += 100;
    const lease = new PlantedLease(number);
    const asking = {
      client: 0,
      keys: ["k"],
      weight: 2 ** 31,
      isShared: false,
      ttlMs: 1_000,
      since: number === 1 ? 0 : now,
      placedFrom: number === 1 ? 0 : now,
      placedTo: now,
      judgedSince: now,
      serial: 0,
      isInLine: true,
      standsInLine: true,
      mayWaitInMemory: false,
      leadsSince: Infinity,
      hasPlace: true,
      isOut: false,
      until: Infinity,
      placeEndsFrom: Infinity,
      wasGranted: false,
      isOver: false,
    };
    watched.granted(asking, lease);
    watched.released(lease);
    expect(checksOf(watched)).toEqual([]);
  }
  now += 1;
  watched.look();
  expect(checksOf(watched)).toEqual(["order"]);
});

test("a free lock with somebody waiting is found after the patience, and only then", () => {
  const watched = history();
  watched.expect(100);
  const lease = new PlantedLease(1);
  grant(watched, 0, lease);
  watched.asks({ ...use, client: 1 }, false);
  now = 500;
  watched.look();
  watched.released(lease);
  watched.look();
  now = 600;
  watched.look();
  expect(checksOf(watched)).toEqual([]);
  now = 601;
  watched.look();
  expect(checksOf(watched)).toEqual(["progress"]);
});

test("a free lock may be left to expire, and nobody has to want it", () => {
  const watched = history();
  watched.expect(100);
  watched.asks(use, false);
  watched.taken({ key: "k" }, 400);
  now = 400;
  watched.look();
  now = 501;
  watched.look();
  expect(checksOf(watched)).toEqual(["progress"]);
  const unwanted = history();
  unwanted.expect(100);
  grant(unwanted, 0, new PlantedLease(1));
  now = 5_000;
  unwanted.look();
  expect(checksOf(unwanted)).toEqual([]);
});

test("a dead client's grant is left to its TTL, also while its downgrade is under way", () => {
  for (const isDowngrading of [false, true]) {
    now = 0;
    const watched = history("death");
    watched.expect(100);
    const writer = new PlantedLease(1);
    grant(watched, 0, writer);
    watched.asks({ ...use, client: 1, waitMs: 5_000 }, false);
    if (isDowngrading) {
      watched.startsDowngrade(writer);
      writer.leftMs = 0;
    }
    watched.gone(0);
    writer.end({ isTold: true });
    for (now of [0, 1_000, 1_100]) {
      watched.look();
    }
    expect(checksOf(watched)).toEqual([]);
    now = 1_101;
    watched.look();
    expect(checksOf(watched)).toEqual(["progress"]);
  }
});

test("who is not answered when its time is over is found", () => {
  const watched = history("storm");
  watched.asks({ ...use, waitMs: 50 }, false);
  now = 350;
  watched.look();
  expect(checksOf(watched)).toEqual([]);
  now = 351;
  watched.look();
  expect(checksOf(watched)).toEqual(["progress"]);
});

test("a loss that is not told in time is found; to who is frozen it is told later", () => {
  const watched = history("storm");
  const lease = new PlantedLease(1);
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  isRunning = false;
  watched.look();
  now = 5_000;
  watched.look();
  isRunning = true;
  watched.look();
  now = 5_001;
  watched.look();
  expect(checksOf(watched)).toEqual([]);
  now = 5_002;
  watched.look();
  expect(checksOf(watched)).toEqual(["loss"]);
});

test("a lease that seemed to be over for a moment is told to be lost in time when it is", () => {
  const watched = history("storm");
  const lease = new PlantedLease(1);
  grant(watched, 0, lease);
  for (const [moment, leftMs] of [
    [0, 0],
    [1, 50],
    [50, 0],
    [51, 0],
  ] as const) {
    now = moment;
    lease.leftMs = leftMs;
    watched.look();
  }
  expect(checksOf(watched)).toEqual([]);
  now = 52;
  watched.look();
  expect(checksOf(watched)).toEqual(["loss"]);
});

test("whose clocks were disturbed is told within the pulse", () => {
  const watched = history("storm");
  const lease = new PlantedLease(1);
  wasDisturbed = true;
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  for (const moment of [0, 1_050]) {
    now = moment;
    watched.look();
  }
  expect(checksOf(watched)).toEqual([]);
  now = 1_051;
  watched.look();
  expect(checksOf(watched)).toEqual(["loss"]);
});

test("a release that says no is a failure but of what a node forgot, and a complaint only where nothing goes wrong", () => {
  const watched = history("storm");
  watched.complain("refusal", "trouble");
  expect(checksOf(watched)).toEqual([]);
  const [before, behind] = [new PlantedLease(1), new PlantedLease(60)];
  grant(watched, 0, before);
  watched.released(before);
  watched.refusesRelease(before, "lost");
  expect(checksOf(watched)).toEqual(["release"]);

  now = 1;
  watched.forgets();
  watched.refusesRelease(before, "lost, as a node forgot it");
  expect(checksOf(watched)).toEqual(["release"]);
  now = 2;
  grant(watched, 0, behind);
  watched.refusesRelease(behind, "lost");
  expect(checksOf(watched)).toEqual(["release", "release"]);

  const calm = history();
  calm.complain("refusal", "trouble");
  expect(checksOf(calm)).toEqual(["refusal"]);
});

test("an operator who was told another number of a client's grant ends that, and no other client's", () => {
  for (const [client, found] of [
    [0, []],
    [1, ["exclusion"]],
  ] as const) {
    const watched = history();
    grant(watched, 0, new PlantedLease(1));
    watched.breaks("k", 30n, client);
    grant(watched, 1, new PlantedLease(60));
    expect(checksOf(watched)).toEqual(found);
  }
});
