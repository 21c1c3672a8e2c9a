import { expect, test } from "vitest";

import { checkNames, FakeLease, grant, history, world } from "./history-fixture.ts";

test("a loss that is not told in time is found; to who is frozen it is told later", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  world.isRunning = false;
  watched.check();
  world.now = 5_000;
  watched.check();
  world.isRunning = true;
  watched.check();
  world.now = 5_001;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  world.now = 5_002;
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
    world.now = moment;
    lease.leftMs = leftMs;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  world.now = 52;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("whose clocks were disturbed is told within the pulse", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  world.hadFault = true;
  grant(watched, 0, lease);
  lease.end({ isTold: false });
  for (const moment of [0, 1_050]) {
    world.now = moment;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  world.now = 1_051;
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

  world.now = 1;
  watched.dataLost();
  watched.releaseRefused(before, "lost, as a node forgot it");
  expect(checkNames(watched)).toEqual(["release"]);
  world.now = 2;
  grant(watched, 0, behind);
  watched.releaseRefused(behind, "lost");
  expect(checkNames(watched)).toEqual(["release", "release"]);

  const calm = history();
  calm.failUnlessFaulty("refusal", "trouble");
  expect(checkNames(calm)).toEqual(["refusal"]);
});
