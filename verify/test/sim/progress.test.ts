import { expect, test } from "vitest";

import { checkNames, FakeLease, grant, history, onFreshWorld, use, world } from "./history-fixture.ts";

onFreshWorld();

test("the judge finds a free lock with a waiter, but not before its bound", () => {
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

test("a reserved lock and a lock without waiters may stay free", () => {
  const watched = history();
  watched.setFreeBound(100);
  watched.requestStarted(use, false);
  watched.reserve({ key: "k" }, 400);
  world.now = 400;
  watched.check();
  world.now = 501;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
  const withoutWaiters = history();
  withoutWaiters.setFreeBound(100);
  grant(withoutWaiters, 0, new FakeLease(1));
  world.now = 5_000;
  withoutWaiters.check();
  expect(checkNames(withoutWaiters)).toEqual([]);
});

test("a dead client's grant may last for its TTL, also during a downgrade", () => {
  for (const isDowngrading of [false, true]) {
    world.now = 0;
    const watched = history("process-death");
    watched.setFreeBound(100);
    const writer = new FakeLease(1);
    grant(watched, 0, writer);
    watched.requestStarted({ ...use, client: 1, waitMs: 5_000 }, false);
    if (isDowngrading) {
      watched.startsDowngrade(writer);
      writer.leaseMs = 0;
    }
    watched.clientDied(0);
    writer.end({ isReported: true });
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

test("the judge finds a request without a reply after its wait time", () => {
  const watched = history("storm");
  watched.requestStarted({ ...use, waitMs: 50 }, false);
  world.now = 350;
  watched.check();
  expect(checkNames(watched)).toEqual([]);
  world.now = 351;
  watched.check();
  expect(checkNames(watched)).toEqual(["progress"]);
});
