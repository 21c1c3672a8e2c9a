import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { CountedVote } from "holdfast";
import { afterEach, beforeEach, expect, test } from "vitest";

import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// Diagnostics report which votes a grant or an extension counted, and the run of each server.

const ttlMs = 10_000;

let fixture: QuorumFixture;
let side: QuorumClient;
let reported: [channel: string, message: { key: string; fencingToken: bigint; votes: CountedVote[] }][];
const listen = (message: unknown, channel: string | symbol): void => {
  reported.push([String(channel), message as (typeof reported)[number][1]]);
};

beforeEach(async () => {
  fixture = new QuorumFixture();
  side = await fixture.client();
  reported = [];
  subscribe("holdfast:vote", listen);
  subscribe("holdfast:extended", listen);
});

afterEach(() => {
  unsubscribe("holdfast:vote", listen);
  unsubscribe("holdfast:extended", listen);
});

test("a grant reports the nodes that have replied with a vote by then, and no others", async () => {
  side.faults[1]?.refuse(new Error("connect ECONNREFUSED"));
  const { fencingToken } = await fixture.settleWithin(10, side.locks.acquire("k", { ttlMs, renew: false }));
  const remainingMs = ttlMs * 0.99 - 2; // no time has passed
  expect(reported).toEqual([
    [
      "holdfast:vote",
      {
        key: "k",
        engine: "redlock",
        fencingToken,
        rounds: 1,
        granted: 2,
        nodes: 3,
        votes: [0, 2].map((node) => ({ node: `n${node}`, runId: runOf(node), via: "reply", remainingMs })),
      },
    ],
  ]);
});

test("a grant by notification reports its kind, and the claim window", async () => {
  const other = await fixture.client();
  const held = await fixture.settleWithin(10, other.locks.acquire("k", { ttlMs }));
  const waiting = side.locks.acquire("k", { ttlMs, renew: false });
  await fixture.advance(10);
  reported = [];
  await fixture.settleWithin(10, held.release());
  await fixture.settleWithin(10, waiting);
  const [[, { votes }]] = reported as [(typeof reported)[number]];
  expect(votes.map(({ via }) => via)).toEqual(votes.map(() => "notification"));
  expect(Math.max(...votes.map(({ remainingMs }) => remainingMs))).toBeLessThan(3_000);
});

test("a grant with a node that restarted with its data reports the run that voted", async () => {
  const before = runOf(0);
  fixture.servers[0]?.restart({ keepData: true });
  await fixture.advance(100_000);
  await fixture.settleWithin(1_000, side.locks.acquire("k", { ttlMs, renew: false }));
  const [first] = reported[0]?.[1].votes ?? [];
  expect(first).toMatchObject({ node: "n0", runId: runOf(0) });
  expect(runOf(0)).not.toBe(before);
});

test("an extension is reported once, when a majority has replied", async () => {
  side.faults[2]?.delay({ requestMs: 5, messageMs: 0 });
  const lease = await fixture.settleWithin(100, side.locks.acquire("k", { ttlMs, renew: false }));
  await fixture.advance(100);
  reported = [];
  await fixture.settleWithin(100, lease.extend());
  await fixture.advance(100);
  expect(reported.map(([channel, { votes }]) => [channel, votes.map(({ node }) => node)])).toEqual([
    ["holdfast:extended", ["n0", "n1"]],
  ]);
});

test("an extension reports the nodes that had the grant without interruption", async () => {
  side.faults[2]?.refuse(new Error("connect ECONNREFUSED"));
  const lease = await fixture.settleWithin(10, side.locks.acquire("k", { ttlMs, renew: false }));
  side.faults[2]?.refuse(null);
  await fixture.advance(500);
  await fixture.settleWithin(1_000, lease.extend());
  const { fencingToken } = lease;
  const remainingMs = ttlMs * 0.99 - 2;
  const votes = [0, 1].map((node) => ({ node: `n${node}`, runId: runOf(node), via: "reply", remainingMs }));
  expect(reported.at(-1)).toEqual(["holdfast:extended", { key: "k", fencingToken, votes }]);
});

function runOf(node: number): string | undefined {
  return fixture.servers[node]?.runId;
}
