import { expect, test } from "vitest";

import { unsyncedAheadMs } from "../../sim/judge/arrivals.ts";
import type { History } from "../../sim/judge/history.ts";
import { toleranceMs } from "../../sim/judge/queue-order.ts";
import type { WaitingRequest } from "../../sim/judge/waiting-request.ts";
import {
  checkNames,
  FakeLease,
  history,
  namesOneMsLater,
  onFreshWorld,
  requestSince,
  use,
  world,
} from "./history-fixture.ts";

onFreshWorld();

/** A request starts, and `laterMs` later a second request, which is granted first. The servers know both clients. */
function overtake(
  watched: History,
  laterMs: number,
  clients: readonly [number, number],
  usesLocalQueue: boolean,
): WaitingRequest {
  for (const client of clients) {
    watched.requestSettled(watched.requestStarted({ ...use, client, key: "other" }, false));
  }
  world.now += 1_000;
  const earlier = watched.requestStarted({ ...use, client: clients[0] }, usesLocalQueue);
  world.now += laterMs;
  watched.granted(watched.requestStarted({ ...use, client: clients[1] }, usesLocalQueue), new FakeLease(7));
  return earlier;
}

test.each(["calm", "storm"] as const)(
  "no request is overtaken in its local queue, scenario %s",
  (scenario) => {
    const watched = history(scenario);
    overtake(watched, 0, [0, 0], true);
    expect(namesOneMsLater(watched)).toEqual(["order"]);
  },
);

test.each([
  { afterMs: toleranceMs - 1, found: [] },
  { afterMs: toleranceMs, found: ["order"] },
])("the next local request of a transferred lease may be in transit: $afterMs ms", ({ afterMs, found }) => {
  const watched = history();
  for (const client of [0, 1]) {
    watched.requestSettled(watched.requestStarted({ ...use, client, key: "other" }, false));
  }
  world.now += 1_000;
  const lease = new FakeLease(1);
  const first = watched.requestStarted({ ...use, client: 0 }, true);
  watched.requestStarted({ ...use, client: 0 }, true);
  world.now += 100;
  const later = watched.requestStarted({ ...use, client: 1 }, true);
  watched.granted(first, lease);
  watched.requestSettled(first);
  watched.released(lease);
  watched.handedOn(0, lease, 100);
  world.now += afterMs;
  watched.granted(later, new FakeLease(2));
  expect(namesOneMsLater(watched)).toEqual(found);
});

test("a fault that begins after the grant of another reader disturbs the earlier reader", () => {
  for (const isDisturbed of [false, true]) {
    world.now = 0;
    const watched = history("storm");
    const reader = { ...use, mode: { kind: "reader" } } as const;
    for (const client of [0, 1]) {
      watched.requestSettled(watched.requestStarted({ ...reader, client, key: "other" }, false));
    }
    world.now += 1_000;
    watched.requestStarted({ ...reader, client: 0 }, false);
    world.now += 1_000;
    watched.granted(watched.requestStarted({ ...reader, client: 1 }, false), new FakeLease(1));
    if (isDisturbed) {
      watched.disturbances.begin(0, world.now + 500);
    }
    world.now += toleranceMs + 1;
    watched.check();
    expect(checkNames(watched)).toEqual(isDisturbed ? [] : ["order"]);
  }
});

test("without faults, no process overtakes a wait that is longer than the tolerance", () => {
  const calm = history();
  overtake(calm, toleranceMs + 1, [0, 1], false);
  expect(namesOneMsLater(calm)).toEqual(["order"]);

  const close = history();
  overtake(close, toleranceMs - 1, [0, 1], false);
  expect(namesOneMsLater(close)).toEqual([]);
});

test.each([
  { what: "must not be overtaken without a fault", disturbed: [], found: ["order"] },
  { what: "may be overtaken if a fault disturbs its client", disturbed: [0], found: [] },
  { what: "may be overtaken by a client that a fault disturbs", disturbed: [1], found: [] },
  { what: "must not be overtaken if a fault disturbs a third client", disturbed: [2], found: ["order"] },
])("in a storm a waiter $what", ({ disturbed, found }) => {
  const storm = history("storm");
  disturbed.forEach((client) => {
    storm.disturbances.begin(client, 2_000);
  });
  overtake(storm, toleranceMs + 1, [0, 1], false);
  expect(namesOneMsLater(storm)).toEqual(found);
});

test("the first request of a client precedes others by as much as the clocks of a majority are slow", () => {
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
    world.now += 1_000;
    watched.requestStarted(use, false);
    world.now += laterMs - knownForMs;
    watched.requestSettled(watched.requestStarted({ ...use, client: 1, key: "other" }, false));
    world.now += knownForMs;
    watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(7));
    expect(namesOneMsLater(watched)).toEqual(found);
  }
});

test("a call after an attempt of a client that no server knew yet has no queue entry either", () => {
  for (const [attemptId, found] of [
    ["first", []],
    [undefined, ["order"]],
  ] as const) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, client: 1, key: "other" }, false));
    const first = watched.requestStarted({ ...use, ...(attemptId && { attemptId }) }, true);
    world.now += 1_000;
    if (attemptId === undefined) {
      watched.requestSettled(first);
    }
    watched.requestStarted(use, true);
    world.now += toleranceMs + 1;
    watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(7));
    expect(namesOneMsLater(watched)).toEqual(found);
  }
});

test("a waiter has its queue entry until its own deadline, although the clocks have drifted apart", () => {
  for (const waitMs of [10, 80]) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, client: 3, key: "other" }, false));
    world.now += 5_000;
    watched.requestStarted({ ...use, client: 3, key: "other" }, false);
    watched.requestStarted({ ...use, client: 3, waitMs }, false);
    watched.granted(watched.requestStarted({ ...use, client: 3 }, false), new FakeLease(8 + world.now));
    expect(namesOneMsLater(watched).filter((check) => check === "order")).toEqual(["order"]);
  }
});

test("the order check allows for the drift of a client's clock since its last reply", () => {
  for (const [laterMs, found] of [
    [toleranceMs + 9, []],
    [toleranceMs + 11, ["order"]],
  ] as const) {
    const watched = history();
    watched.requestSettled(watched.requestStarted({ ...use, key: "other" }, false));
    watched.requestSettled(watched.requestStarted({ ...use, client: 3, key: "other" }, false));
    world.now += 1_000 - laterMs;
    watched.requestStarted(use, false);
    world.now += laterMs;
    watched.granted(watched.requestStarted({ ...use, client: 3 }, false), new FakeLease(7));
    expect(namesOneMsLater(watched)).toEqual(found);
  }
});

test("a request that ends at the same time is not overtaken", () => {
  const watched = history();
  const earlier = overtake(watched, 500, [0, 1], false);
  watched.requestSettled(earlier);
  expect(namesOneMsLater(watched)).toEqual([]);
});

test.each([
  { what: "by a correct clock", client: 0, afterMs: 505, found: [] },
  { what: "by a fast clock", client: 3, afterMs: 500, found: [] },
  { what: "not one millisecond earlier", client: 0, afterMs: 504, found: ["order"] },
])("a request is not overtaken after its wait time: $what", ({ client, afterMs, found }) => {
  const watched = history();
  watched.requestSettled(watched.requestStarted({ ...use, client }, false));
  world.now = 1_000;
  watched.requestStarted({ ...use, client, waitMs: 505 }, false);
  world.now += afterMs;
  watched.granted(watched.requestStarted({ ...use, client: 1 }, false), new FakeLease(1));
  expect(namesOneMsLater(watched)).toEqual(found);
});

test("a process may hand a lease over sixteen times while other processes wait, and not more often", () => {
  const watched = history();
  watched.requestSettled(watched.requestStarted({ ...use, client: 1 }, false));
  world.now = 1_000;
  watched.requestStarted({ ...use, client: 1 }, false);
  for (let number = 1; number <= 18; number += 1) {
    world.now += 100;
    const lease = new FakeLease(number);
    const request = requestSince(number === 1 ? 0 : world.now, {
      arrivedTo: world.now,
      judgedSince: world.now,
      isInLocalQueue: true,
      usesLocalQueue: true,
    });
    watched.granted(request, lease);
    watched.released(lease);
    expect(checkNames(watched)).toEqual([]);
  }
  expect(namesOneMsLater(watched)).toEqual(["order"]);
});
