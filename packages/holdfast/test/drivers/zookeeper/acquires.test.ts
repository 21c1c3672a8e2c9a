import { expect, test } from "vitest";

import { Acquires, type AcquiresHost } from "../../../src/drivers/zookeeper/acquires.ts";
import { Observations, ServerTime, type GrantView } from "../../../src/drivers/zookeeper/grants.ts";
import { OwnTokens } from "../../../src/drivers/zookeeper/own-tokens.ts";
import { Paths, type View } from "../../../src/drivers/zookeeper/paths.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { systemRandom } from "../../../src/runtime/random.ts";

const paths = new Paths("/root");
const attempt = {
  key: "k",
  token: "mine",
  lockMode: undefined,
  ttlMs: 60_000,
  waitMs: 60_000,
  ticket: undefined,
  entryTtlMs: 4_000,
  owner: "owner",
  reason: undefined,
  labels: undefined,
};

test("a waiter looks again if the change that it watches arrives together with the reply", async () => {
  const path = paths.held("k", "other", "1");
  const held = { path, token: "other" };
  const view: View = { held, entries: [{ path: paths.entry("k", "mine", 1), token: "mine", ticket: 1 }] };
  const grant: GrantView = {
    path,
    fencingToken: 1n,
    version: 0,
    createdAt: Date.now(),
    changedAt: Date.now(),
    owner: "other",
    ttlMs: 60_000,
    client: "c",
  };
  let views = 0;
  let watches = 0;
  const host = {
    session: {
      request: async () => {
        watches += 1;
        if (watches === 1) {
          acquires.changed(paths.grant("k")); // before the reply's continuation runs
        }
      },
    },
    nodes: {
      view: async () => {
        views += 1;
        return view;
      },
      grant: async () => grant,
    },
    paths,
    own: new OwnTokens(systemClock, async () => undefined),
    observations: new Observations(systemClock),
    time: new ServerTime(systemClock),
    clock: systemClock,
    random: systemRandom,
    maxClockDifferenceMs: 60_000,
  };
  const acquires = new Acquires(host as unknown as AcquiresHost);
  expect(await acquires.acquire(attempt, () => false)).toMatchObject({
    outcome: "queued",
    ticket: "1-mine",
    position: 0,
  });
  expect([views, watches]).toEqual([2, 2]);
  expect(acquires.changed(paths.grant("k"))).toBe("1-mine");
  host.own.close();
});

test("a request whose caller got its result while the grant was read does not enter the queue", async () => {
  const view: View = { held: { path: paths.held("k", "other", "1"), token: "other" }, entries: [] };
  let isSettled = false;
  const host = {
    session: { request: () => expect.unreachable("nothing is written") },
    nodes: {
      view: async () => view,
      grant: async () => {
        isSettled = true;
      },
      removeAll: async (removed: readonly string[]) => expect(removed).toEqual([]),
    },
    own: new OwnTokens(systemClock, async () => undefined),
    clock: systemClock,
  };
  const acquires = new Acquires(host as unknown as AcquiresHost);
  expect(await acquires.acquire(attempt, () => isSettled)).toMatchObject({ outcome: "held" });
  host.own.close();
});
