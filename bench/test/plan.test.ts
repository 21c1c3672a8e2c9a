import { expect, test } from "vitest";

import { parseOptions } from "../src/options.ts";
import { plan } from "../src/plan.ts";
import { peers } from "../src/roster.ts";
import type { Suite } from "../src/suite.ts";

const planned = (...args: string[]): readonly Suite[] => plan(parseOptions(args, "results"));

const roundsOf = (suites: readonly Suite[]): unknown => suites.map(({ name, rounds }) => [name, rounds]);

test("suites on a quorum have five rounds, the others three", () => {
  expect(roundsOf(planned())).toEqual([
    ["uncontended", 3],
    ["hot", 3],
    ["renewals", 3],
    ["takeover", 3],
    ["read-write", 3],
    ["semaphore", 3],
    ["command-line", 3],
    ["redlock-uncontended", 5],
    ["redlock-hot", 5],
  ]);
});

test("a quick run has one round, and as many as were asked for where some were", () => {
  const names = ["--quick", "--suite", "hot,redlock-hot"];
  expect(roundsOf(planned(...names))).toEqual([
    ["hot", 1],
    ["redlock-hot", 1],
  ]);
  expect(roundsOf(planned(...names, "--rounds", "2"))).toEqual([
    ["hot", 2],
    ["redlock-hot", 2],
  ]);
});

test("only who can lock a majority takes part on a quorum, on the hot key in each of its set-ups", () => {
  const [uncontended, hot] = planned("--suite", "redlock-uncontended,redlock-hot");
  const others = ["redis-semaphore", "redlock-universal"];
  expect(uncontended?.entrants).toEqual(["redlock", ...others, "@sesamecare-oss/redlock", "holdfast"]);
  expect(hot?.entrants).toEqual([
    "redlock",
    "redlock-tries",
    ...others,
    "@sesamecare-oss/redlock",
    "@sesamecare-oss/redlock-tries",
    "holdfast",
  ]);
});

test("readers and writers are held against everybody's mutex, and a semaphore against those that there are", () => {
  const [readWrite, semaphore] = planned("--suite", "read-write,semaphore");
  expect(readWrite?.entrants).toEqual(["raw", ...peers, "holdfast", "holdfast-read-write"]);
  expect(semaphore?.entrants).toEqual(["redis-semaphore-semaphore", "holdfast-semaphore"]);
  expect(planned("--suite", "semaphore", "--peers", "redlock")[0]?.entrants).toEqual(["holdfast-semaphore"]);
});

test("a quorum's hot key is measured on five and on three nodes, and quickly on five", () => {
  expect(planned("--suite", "redlock-hot")[0]?.cases).toEqual(["5 nodes, hold 1 ms", "3 nodes, hold 1 ms"]);
  expect(planned("--quick", "--suite", "redlock-hot")[0]?.cases).toEqual(["5 nodes, hold 1 ms"]);
});

test("a metric that is told against another names one of the same suite", () => {
  for (const { metrics } of planned()) {
    const ids = metrics.map(({ id }) => id);
    const named = metrics.flatMap(({ against }) => (against === undefined ? [] : [against]));
    expect(ids).toEqual(expect.arrayContaining(named));
  }
});
