import { expect, test } from "vitest";

import { checkNames, FakeLease, grant, history, onFreshWorld, world } from "./history-fixture.ts";

onFreshWorld();

test("the judge finds a loss that is not reported in time, and allows a frozen process more time", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  lease.end({ isReported: false });
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

test("the time to report a loss starts anew if the lease becomes valid again", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  for (const [moment, leaseMs] of [
    [0, 0],
    [1, 50],
    [50, 0],
    [51, 0],
  ] as const) {
    world.now = moment;
    lease.leaseMs = leaseMs;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  world.now = 52;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("a process with a disturbed clock may report a loss after its clock check", () => {
  const watched = history("storm");
  const lease = new FakeLease(1);
  world.hadFault = true;
  grant(watched, 0, lease);
  lease.end({ isReported: false });
  for (const moment of [0, 1_050]) {
    world.now = moment;
    watched.check();
  }
  expect(checkNames(watched)).toEqual([]);
  world.now = 1_051;
  watched.check();
  expect(checkNames(watched)).toEqual(["loss"]);
});

test("a release may return false only after a node has lost its data, and an error may occur only with faults", () => {
  const watched = history("storm");
  watched.failUnlessFaulty("refusal", "trouble");
  expect(checkNames(watched)).toEqual([]);
  const [before, after] = [new FakeLease(1), new FakeLease(60)];
  grant(watched, 0, before);
  watched.released(before);
  watched.releaseRefused(before, "lost");
  expect(checkNames(watched)).toEqual(["release"]);

  world.now = 1;
  watched.dataLost();
  watched.releaseRefused(before, "lost with the data of a node");
  expect(checkNames(watched)).toEqual(["release"]);
  world.now = 2;
  grant(watched, 0, after);
  watched.releaseRefused(after, "lost");
  expect(checkNames(watched)).toEqual(["release", "release"]);

  const calm = history();
  calm.failUnlessFaulty("refusal", "trouble");
  expect(checkNames(calm)).toEqual(["refusal"]);
});
