import { expect, test } from "vitest";

import * as formulae from "../src/capacity/formulae.ts";

// The examples of docs/capacity.md. The suite `capacity` and quick.test.ts compare the formulae with real servers.

test("each process opens ten connections to a quorum of five nodes", () => {
  expect(formulae.connections({ processes: 3, nodes: 5 })).toBe(30);
});

test("memory is the sum of leases, waiters and queues", () => {
  const { lease, waiter, queue } = formulae.bytesOf;
  const counts = { lease: 2, waiter: 3, queue: 1 };
  expect(formulae.redisBytes(counts)).toBe(2 * lease + 3 * waiter + queue);
  expect(formulae.redisBytes({})).toBe(0);
});

test("rates are limited by round trips, and on one key by the hold time", () => {
  expect(formulae.pairsPerSecond({ tasks: 10, roundTripMs: 1 })).toBe(5_000);
  expect(formulae.turnsPerSecond({ holdMs: 9, roundTripMs: 1 })).toBe(100);
});

test("a lease is renewed three times within its TTL", () => {
  expect(formulae.renewalsPerSecond({ leases: 10_000, ttlMs: 30_000 })).toBe(1_000);
});

test("a million acquisitions a second at 10 µs each take ten cores, or twenty shards at half load", () => {
  const cores = formulae.serverCores({ perSecond: 1_000_000, cpuMicros: 10 });
  expect(cores).toBe(10);
  expect(formulae.shards({ cores, busyAtMost: 0.5 })).toBe(20);
});
