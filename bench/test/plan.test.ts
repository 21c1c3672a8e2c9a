import { expect, test } from "vitest";

import { isEngine } from "../src/engines/engine.ts";
import { parseOptions } from "../src/options.ts";
import { plan } from "../src/run/plan.ts";
import { peers } from "../src/run/contestant-list.ts";
import type { Suite } from "../src/suites/suite.ts";

const planned = (...args: string[]): readonly Suite[] => plan(parseOptions(args, "results"));

const roundsOf = (suites: readonly Suite[]): unknown => suites.map(({ name, rounds }) => [name, rounds]);

test("suites on a quorum have five rounds, churn has one, and the others have three", () => {
  expect(roundsOf(planned())).toEqual([
    ["uncontended", 3],
    ["hot", 3],
    ["skew", 3],
    ["waiting", 3],
    ["renewals", 3],
    ["takeover", 3],
    ["latency", 3],
    ["kinds", 3],
    ["read-write", 3],
    ["semaphore", 3],
    ["memory", 3],
    ["churn", 1],
    ["capacity", 3],
    ["service", 3],
    ["command-line", 3],
    ["redlock-uncontended", 5],
    ["redlock-hot", 5],
    ["redlock-latency", 5],
    ["postgres-uncontended", 3],
    ["postgres-hot", 3],
    ["mysql-uncontended", 3],
    ["mysql-hot", 3],
    ["etcd-uncontended", 3],
    ["etcd-hot", 3],
    ["zookeeper-uncontended", 3],
    ["zookeeper-hot", 3],
  ]);
});

test("a quick run has one round, or the requested number", () => {
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

test("only contestants with a majority lock run on a quorum, and on the hot key with all their set-ups", () => {
  const [uncontended, hot] = planned("--suite", "redlock-uncontended,redlock-hot");
  const others = ["redis-semaphore", "redlock-universal"];
  expect(uncontended?.contestants).toEqual(["redlock", ...others, "@sesamecare-oss/redlock", "holdfast"]);
  expect(hot?.contestants).toEqual([
    "redlock",
    "redlock-tries",
    ...others,
    "@sesamecare-oss/redlock",
    "@sesamecare-oss/redlock-tries",
    "holdfast",
  ]);
});

test("a read-write lock is compared with all mutexes, and a semaphore with the other semaphores", () => {
  const [readWrite, semaphore] = planned("--suite", "read-write,semaphore");
  expect(readWrite?.contestants).toEqual(["raw", ...peers, "holdfast", "holdfast-read-write"]);
  expect(semaphore?.contestants).toEqual(["redis-semaphore-semaphore", "holdfast-semaphore"]);
  expect(planned("--suite", "semaphore", "--peers", "redlock")[0]?.contestants).toEqual([
    "holdfast-semaphore",
  ]);
});

test("a requested contestant that cannot run a suite has no turn, and its reason is reported", () => {
  const [renewals] = planned("--suite", "renewals");
  expect(renewals?.contestants).not.toContain("@verrou/core");
  expect(renewals?.absent).toEqual([{ contestants: ["@verrou/core"], reason: "has no renewal of its own" }]);
  expect(planned("--suite", "renewals", "--peers", "redlock")[0]?.absent).toEqual([]);
  const [hot] = planned("--suite", "redlock-hot", "--peers", "redlock");
  expect(hot?.absent).toEqual([{ contestants: ["raw"], reason: "locks one server only" }]);
});

test("every contestant has turns in every suite on Redis, or is reported as absent", () => {
  const ours: readonly string[] = ["capacity", "churn", "command-line", "service"];
  for (const { name, topology, contestants, absent } of planned()) {
    if (isEngine(topology)) continue;
    const mentioned = [...contestants, ...absent.flatMap((absence) => absence.contestants)];
    const isMentioned = (peer: string): boolean =>
      mentioned.some((contestant) => contestant.startsWith(peer));
    if (!ours.includes(name))
      expect([name, ["raw", ...peers].filter((one) => !isMentioned(one))]).toEqual([name, []]);
  }
});

test("a hot key is measured with all hold times and process counts, and a quorum with nodes down", () => {
  const [hot, redlockHot] = planned("--suite", "hot,redlock-hot");
  expect(hot?.cases).toHaveLength(9);
  expect(hot?.cases[3]).toBe("4 processes, hold 0 ms");
  expect(redlockHot?.cases).toEqual([
    "5 nodes, hold 1 ms",
    "5 nodes, 1 down, hold 1 ms",
    "5 nodes, 2 down, hold 1 ms",
    "3 nodes, hold 1 ms",
    "3 nodes, 1 down, hold 1 ms",
  ]);
});

test("the uncontended lock is measured with fresh keys first, then with a key per task", () => {
  const [uncontended] = planned("--suite", "uncontended");
  expect(uncontended?.cases).toEqual([
    "fresh keys, 1 task",
    "fresh keys, 8 tasks",
    "fresh keys, 64 tasks",
    "fresh keys, 512 tasks",
    "a key per task, 1 task",
    "a key per task, 8 tasks",
    "a key per task, 64 tasks",
    "a key per task, 512 tasks",
  ]);
  expect(uncontended?.contestants).toEqual(["raw", ...peers, "holdfast"]);
});

test("on each engine Holdfast is compared with the engine's own lock, and on a hot key with a poller of a row", () => {
  const names = "postgres-uncontended,postgres-hot,mysql-hot,etcd-hot,zookeeper-hot";
  const compared = planned("--suite", names).map(({ contestants, absent, reference }) => [
    [...contestants, ...absent.flatMap((one) => one.contestants)].toSorted(),
    reference,
  ]);
  expect(compared).toEqual([
    [["advisory-lock", "holdfast", "postgres-poller"], "advisory-lock"],
    [["advisory-lock", "holdfast", "postgres-poller"], "postgres-poller"],
    [["get-lock", "holdfast", "mysql-poller"], "mysql-poller"],
    [["holdfast", "lock-rpc", "lock-rpc-own-lease"], "lock-rpc"],
    [["holdfast", "kazoo"], "kazoo"],
  ]);
});

test("on a hot key, Holdfast also runs without handover", () => {
  const [hot] = planned("--suite", "hot", "--only", "redis-semaphore,holdfast-strict");
  expect(hot?.contestants).toEqual(["redis-semaphore", "holdfast-strict"]);
  expect(hot?.cases).toContain("4 processes, hold 0 ms");
});

test("churn lasts for the requested minutes", () => {
  expect(planned("--suite", "churn", "--minutes", "60")[0]?.cases).toEqual(["1,000,000 keys, 60 min"]);
});

test("a metric that is compared with another names one of the same suite", () => {
  for (const { metrics } of planned()) {
    const ids = metrics.map(({ id }) => id);
    const named = metrics.flatMap(({ against }) => (against === undefined ? [] : [against]));
    expect(ids).toEqual(expect.arrayContaining(named));
  }
});

test("a panel draws metrics of its suite", () => {
  for (const { metrics, panels } of planned()) {
    const ids = metrics.map(({ id }) => id);
    const drawn = panels.flatMap((panel) => {
      if (panel.form === "curves") return [];
      return panel.form === "bars" ? [panel.metric] : panel.metrics;
    });
    expect(ids).toEqual(expect.arrayContaining(drawn));
  }
});

test("only requested contestants have turns, and no other contestant is mentioned", () => {
  const [hot, renewals] = planned("--suite", "hot,renewals", "--only", "holdfast-strict,raw");
  expect(hot?.contestants).toEqual(["raw", "holdfast-strict"]);
  expect([renewals?.contestants, renewals?.absent]).toEqual([["raw"], []]);
});
