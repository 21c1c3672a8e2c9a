import { expect, test } from "vitest";

import type { History } from "../../sim/judge/history.ts";
import { checkNames, FakeLease, grant, history, world } from "./history-fixture.ts";

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
  world.now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual([]);
  grant(watched, 2, new FakeLease(3));
  expect(checkNames(watched)).toEqual(["exclusion"]);
});

test("a quorum of which one node forgets is asked for exclusion all the same", () => {
  const watched = history("storm", [], [0, 0, 0]);
  grant(watched, 0, new FakeLease(1));
  world.now = 1;
  watched.dataLost();
  grant(watched, 1, new FakeLease(2));
  expect(checkNames(watched)).toEqual(["exclusion"]);
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
