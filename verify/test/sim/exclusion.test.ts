import { expect, test } from "vitest";

import type { History } from "../../sim/judge/history.ts";
import { checkNames, FakeLease, grant, history, onFreshWorld, world } from "./history-fixture.ts";

onFreshWorld();

test("the judge finds two valid leases at the same time", () => {
  const watched = history();
  grant(watched, 0, new FakeLease(1));
  expect(checkNames(watched)).toEqual([]);
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("two leases do not conflict if the first is expired, released, broken, or on the same grant", () => {
  for (const ends of [
    (first: FakeLease) => {
      first.end({ isReported: true });
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
  grant(named, 1, new FakeLease(2), "name"); // the same attempt of another process has its own grant
  expect(checkNames(named)).toEqual(["exclusion"]);
});

test("a caller that gets a grant after its break is no holder", () => {
  const watched = history();
  watched.operator.breaks("k", 1n, 0);
  grant(watched, 0, new FakeLease(30));
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual([]);
});

test("after one server has lost its data, exclusion applies only to later grants", () => {
  const watched = history("storm");
  grant(watched, 0, new FakeLease(1));
  world.now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual([]);
  grant(watched, 2, new FakeLease(3));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("exclusion applies to all grants of a quorum after one node has lost its data", () => {
  const watched = history("storm", [], [0, 0, 0]);
  grant(watched, 0, new FakeLease(1));
  world.now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("a break with an unknown number ends the grant of the named client only", () => {
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

test.each([1, 2])("the judge finds a number that does not rise: %i after 2", (number) => {
  const watched = history();
  const first = new FakeLease(2);
  grant(watched, 0, first);
  watched.released(first);
  grant(watched, 1, new FakeLease(number));
  expect(checkNames(watched)).toEqual(["fencing"]);
});

const bounds = { weight: 2 ** 31, ttlMs: 1_000 };

test("the judge finds an adopted lease with another number", () => {
  const watched = history();
  const transferred = new FakeLease(1);
  grant(watched, 0, transferred);
  watched.released(transferred);
  watched.handedOn(0, transferred, 100);
  watched.adopted(1, new FakeLease(1), 1n, bounds);
  expect(checkNames(watched)).toEqual([]);
  watched.adopted(1, new FakeLease(2), 1n, bounds);
  expect(checkNames(watched)).toContain("fencing");
});
