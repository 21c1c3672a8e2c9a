import { expect, test } from "vitest";

import { chunksOf, eventsOf, type ServerEvent } from "../src/api/sse.ts";
import type { Node, Owner, PastHold } from "../src/api/types.ts";
import { targetsOf } from "../src/model/break-target.ts";
import { formatDuration, formatTicking, parseDuration } from "../src/model/duration.ts";
import { inLocalTime } from "../src/model/history.ts";
import { lossOfOne } from "../src/model/nodes.ts";
import { firstOwners, matchingOwners, ownersOf, renewedMsOf } from "../src/model/owners.ts";
import { ownerParts, shellQuote } from "../src/model/owner.ts";
import { rowOf } from "../src/model/row.ts";
import { lanesOf, mergedHolds, timelineOf } from "../src/model/timeline.ts";
import { lockOf } from "./support/locks.ts";

test("the times of a history follow the clock of the browser, without the delay of the reply", () => {
  const hold = { key: "k", owner: "o", since: 3_000, until: 4_000 };
  const history = { knownSince: 1_000, asOf: 10_000, holds: [hold, { ...hold, until: null }] };
  expect(inLocalTime(history, 3_610_120)).toMatchObject({
    knownSince: 3_601_000,
    holds: [
      { since: 3_603_000, until: 3_604_000 },
      { since: 3_603_000, until: null },
    ],
  });
  expect(inLocalTime(history, 10_300)).toEqual(history);
  const { asOf: _, ...older } = history;
  expect(inLocalTime(older, 3_610_120)).toEqual(older);
});

test("durations are those of the command line", () => {
  expect([0, 999, 1_000, 61_000, 3_600_000, 97_200_000, Infinity].map(formatDuration)).toEqual([
    "0ms",
    "999ms",
    "1s",
    "1m 1s",
    "1h",
    "1d 3h",
    "forever",
  ]);
  expect([999, 1_999, 61_999].map(formatTicking)).toEqual(["<1s", "1s", "1m 1s"]);
  expect(["500ms", "1.5m", "2h", "5", "m", "5 m"].map(parseDuration)).toEqual([
    500,
    90_000,
    7_200_000,
    undefined,
    undefined,
    undefined,
  ]);
});

test("an owner has a name, a host and a process, if it is written so", () => {
  expect(ownerParts("billing@pod-7:4711")).toEqual({ name: "billing", host: "pod-7", pid: "4711" });
  expect(ownerParts("a@b@host")).toEqual({ name: "a@b", host: "host" });
  expect(ownerParts("nightly")).toEqual({ name: "nightly" });
  expect(["order:555", "it's", "a b", ""].map(shellQuote)).toEqual([
    "order:555",
    `'it'\\''s'`,
    "'a b'",
    "''",
  ]);
});

test("owners are derived from locks where the service has no directory", () => {
  const rows = [
    lockOf("a", { heldMs: 10 }),
    lockOf(
      "b",
      { heldMs: 20 },
      {
        waiters: [
          { owner: "ci", position: 0 },
          { owner: "ci", position: 1 },
        ],
        waiterCount: 2,
      },
    ),
  ].map((lock) => rowOf(lock, 1_000, undefined));
  const owners = ownersOf(rows, 1_000);
  expect(owners.map(({ owner, holds, waits }) => [owner, holds.length, waits[0]?.count])).toEqual([
    ["billing@pod-7:4711", 2, undefined],
    ["ci", 0, 2],
  ]);
  expect(matchingOwners(owners, "POD-7").map(({ owner }) => owner)).toEqual(["billing@pod-7:4711"]);
  const held = (owner: string, holdCount: number): Owner => ({
    owner,
    holdCount,
    answered: true,
    holds: [],
    waits: [],
  });
  const many = firstOwners([held("c", 3), held("b", 1), held("a", 2)], 2);
  expect(many.map(({ owner }) => owner)).toEqual(["a", "c"]);
});

test("the age of a hold without a directory counts from the time of its state", () => {
  const row = rowOf(lockOf("a", { heldMs: 5_000 }), 10_000, undefined);
  expect(ownersOf([row], 70_000)[0]?.holds[0]?.heldMs).toBe(65_000);
});

test("the time since a grant is no renewal", () => {
  const hold = { key: "a", kind: "mutex", ttlMs: 30_000 } as const;
  expect(renewedMsOf({ ...hold, heldMs: 20_000, renewedMs: 19_900 })).toBeUndefined();
  expect(renewedMsOf({ ...hold, heldMs: 12_000, renewedMs: 2_000 })).toBe(2_000);
});

test("of several holders none counts as late, because the remaining TTL is that of any of them", () => {
  const shared = { ...lockOf("pool", { remainingMs: 30_000 }, { kind: "semaphore", limit: 5 }) };
  const holders = [...shared.holders, { owner: "b", fencingToken: "8", remainingMs: 30_000 }];
  const before = rowOf({ ...shared, holders }, 0, undefined);
  const late = rowOf({ ...shared, holders, remainingMs: 5_000 }, 25_000, before);
  expect(late.state).toBe("late");
  expect(targetsOf(late).map(({ isAlive, isLate, since }) => [isAlive, isLate, since])).toEqual([
    [true, false, 0],
    [true, false, undefined],
  ]);
  const alone = rowOf({ ...shared, remainingMs: 5_000 }, 25_000, rowOf(shared, 0, undefined));
  expect(targetsOf(alone)).toMatchObject([{ isAlive: false, isLate: true }]);
});

test("the timeline places holds between the oldest and now, and overlapping ones in lanes", () => {
  const hold = (since: number, until: number | null): PastHold => ({ key: "k", owner: "a", since, until });
  const { bars, ticks } = timelineOf([hold(90_000, null), hold(40_000, 60_000), hold(0, 50_000)], 100_000);
  expect(bars.map(({ from, width }) => [from, Number(width.toFixed(3))])).toEqual([
    [0.9, 0.1],
    [0.4, 0.2],
    [0, 0.5],
  ]);
  expect(ticks.map(({ ms }) => ms)).toEqual([30_000, 60_000, 90_000]);
  expect(lanesOf(bars, 4)).toEqual([0, 1, 0]);
  expect(lanesOf(bars, 1)).toEqual([0, 0, 0]);
});

test("the history of the service and the holds that the page has seen are one list", () => {
  const hold = (fencingToken: string, since: number, end?: "released"): PastHold => ({
    key: "k",
    owner: "a",
    fencingToken,
    since,
    until: null,
    ...(end && { end }),
  });
  expect(
    mergedHolds([hold("2", 20, "released")], [hold("3", 30), hold("2", 21), hold("1", 10)], true),
  ).toEqual([hold("3", 30), hold("2", 20, "released"), hold("1", 10)]);
  const ended: PastHold = { ...hold("2", 20), until: 25, end: "unknown" };
  expect(mergedHolds([hold("2", 20)], [ended], false)).toEqual([ended]);
});

test("a hold of a mutex ends when the next one begins", () => {
  const hold = (since: number, until: number | null): PastHold => ({ key: "k", owner: "a", since, until });
  const ends = mergedHolds([hold(30, null), hold(20, 31), hold(10, null), hold(0, 5)], [], false);
  expect(ends.map(({ until }) => until)).toEqual([null, 30, 20, 5]);
});

test("the page of nodes says what one more failure means", () => {
  const node = (reachable: boolean): Node => ({ reachable, quarantine: null }) as Node;
  const nodes = (up: number): Node[] => Array.from({ length: 5 }, (_, index) => node(index < up));
  expect(lossOfOne(nodes(5), "quorum")).toBe("Lose one more: still a quorum (4 of 5, 3 needed)");
  expect(lossOfOne(nodes(3), "quorum")).toBe("Lose one more: no quorum (2 of 5, 3 needed)");
  expect(lossOfOne(nodes(2), "quorum")).toBe("No quorum: 2 of 5 nodes are usable, 3 are needed");
  expect(lossOfOne([node(true)], "server")).toBe("");
});

test("events of a stream may be cut anywhere, and comments are signs of life", async () => {
  const text = 'event: changed\ndata: {"key":"ä"}\n\n: \n\nevent: draining\ndata: {}\n\nevent: cut';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 7, bytes.length]) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events: ServerEvent[] = [];
    for await (const event of eventsOf(chunksOf(body))) events.push(event);
    expect(events).toEqual([
      { name: "changed", data: '{"key":"ä"}' },
      { name: "", data: "" },
      { name: "draining", data: "{}" },
    ]);
  }
});
