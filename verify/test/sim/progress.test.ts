import { expect, test } from "vitest";

import { checkNames, FakeLease, grant, history, use, world } from "./history-fixture.ts";

test("a free lock with somebody waiting is found after the patience, and only then", () => {
  const watched = history();
  watched.setFreeBound(100);
  const lease = new FakeLease(1);
  grant(watched, 0, lease);
  watched.requestStarted({ ...use, client: 1 }, false);
  world.now = 500;
  watched.check();
  watched.released(lease);
  watched.check();
  world.now = 600;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  world.now = 601;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
});

test("a free lock may be left to expire, and nobody has to want it", () => {
  const watched = history();
  watched.setFreeBound(100);
  watched.requestStarted(use, false);
  watched.reserve({ key: "k" }, 400);
  world.now = 400;
  watched.check();
  world.now = 501;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
  const unwanted = history();
  unwanted.setFreeBound(100);
  grant(unwanted, 0, new FakeLease(1));
  world.now = 5_000;
  unwanted.check();
  expect(checkNames(unwanted)).toEqual([]);
});

test("a dead client's grant is left to its TTL, also while its downgrade is under way", () => {
  for (const isDowngrading of [false, true]) {
    world.now = 0;
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
    for (const moment of [0, 1_000, 1_100]) {
      world.now = moment;
      watched.check();
    }
    expect(checkNames(watched)).toEqual([]);
    world.now = 1_101;
    watched.check();
    expect(checkNames(watched)).toEqual(["progress"]);
  }
});

test("who is not answered when its time is over is found", () => {
  const watched = history("storm");
  watched.requestStarted({ ...use, waitMs: 50 }, false);
  world.now = 350;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  world.now = 351;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
});
