import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";

import { readRecords, type Figure, type SuiteRecord } from "../src/report/record.ts";
import { questions, suiteNames } from "../src/report/suite-names.ts";
import { rivals } from "../src/run/engine-contestants.ts";

// Smoke tests of the suites with real servers and processes. The figures of such short runs are not meaningful.

const program = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const call = promisify(execFile);

/** Few contestants and no peers, because each costs the start of at least one process. */
const contestants = [
  "holdfast",
  "holdfast-far",
  "holdfast-several",
  "holdfast-service",
  "bare-http",
  ...rivals,
];

const mostMs = 120_000;
const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

async function runQuick(...names: readonly string[]): Promise<readonly SuiteRecord[]> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-test-"));
  folders.push(folder);
  const options = ["--quick", "--only", contestants.join(","), "--suite", names.join(",")];
  await call(process.execPath, [program, ...options, "--out", folder], { timeout: mostMs });
  return readRecords(folder);
}

/** Checks that every suite has a record, and that every contestant which is not absent has figures in every case. */
function expectComplete(records: readonly SuiteRecord[], names: readonly string[]): void {
  expect(records.map(({ suite }) => suite)).toEqual(names);
  for (const { suite, cases, absent } of records) {
    for (const [label, rows] of Object.entries(cases)) {
      const missing = Object.entries(rows).filter(([, { median }]) => median.length === 0);
      const unexplained = missing.filter(([name]) => !absent.some((line) => line.includes(name)));
      expect([suite, label, unexplained]).toEqual([suite, label, []]);
    }
  }
}

function notesOf(records: readonly SuiteRecord[]): readonly string[] {
  return records.flatMap(({ notes }) => notes);
}

/** A figure of Holdfast. */
function figure(records: readonly SuiteRecord[], of: { case: string; id: string }): Figure | undefined {
  const figures = records.flatMap(({ cases, metrics }) =>
    Object.entries(cases)
      .filter(([label]) => label.startsWith(of.case))
      .map(([, { holdfast }]) => holdfast?.median[metrics.findIndex(({ id }) => id === of.id)]),
  );
  return figures[0];
}

test.concurrent(
  "the suites for one server run: load, waiting, renewal and distance",
  { timeout: mostMs },
  async () => {
    const names = ["uncontended", "hot", "skew", "waiting", "renewals", "latency"];
    const records = await runQuick(...names);
    expectComplete(records, names);
    expect(notesOf(records)).toEqual([]);
    // Two round trips take at least 8 ms, regardless of the load on the machine. The waits are no measure here, because a pending
    // wait counts with its duration so far.
    expect(figure(records, { case: "2 ms each way, alone", id: "turnMs" })).not.toBeLessThan(7);
  },
);

test.concurrent(
  "the suites for one server run: kinds, memory, the service",
  { timeout: mostMs },
  async () => {
    const names = ["kinds", "memory", "churn", "service"];
    const records = await runQuick(...names);
    expectComplete(records, names);
    expect(notesOf(records)).toEqual([]);
    expect(figure(records, { case: "a held lease", id: "server" })).toBeGreaterThan(100);
    expect(figure(records, { case: "500 keys", id: "cycles" })).toBeGreaterThan(0);
  },
);

/** These ratios do not depend on the speed of the machine. */
test.concurrent(
  "the formulae of memory and of connections match the measurements",
  { timeout: mostMs },
  async () => {
    const records = await runQuick("capacity");
    expectComplete(records, ["capacity"]);
    expect(figure(records, { case: "connections", id: "ratio" })).toBe(1);
    for (const what of ["leases", "waiters in one", "waiters in a queue each"]) {
      const ratio = figure(records, { case: `bytes in Redis: ${what}`, id: "ratio" });
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.3);
    }
    const left = figure(records, { case: "bytes in Redis: keys that were used", id: "measured" });
    expect(left).toBeLessThan(50_000); // of 4 000 keys: the variation of Redis itself
  },
);

test.concurrent(
  "the suites for a quorum run, with nodes that are down or distant",
  { timeout: mostMs },
  async () => {
    const names = ["redlock-uncontended", "redlock-hot", "redlock-latency"];
    expectComplete(await runQuick(...names), names);
  },
);

test.concurrent.each([
  {
    engines: "PostgreSQL and MariaDB",
    names: ["postgres-uncontended", "postgres-hot", "mysql-uncontended", "mysql-hot"],
  },
  {
    engines: "etcd and ZooKeeper",
    names: ["etcd-uncontended", "etcd-hot", "zookeeper-uncontended", "zookeeper-hot"],
  },
])(
  "the suites for $engines run, with the locks that programs write by hand",
  { timeout: mostMs },
  async ({ names }) => {
    const records = await runQuick(...names);
    expectComplete(records, names);
    if (process.env["CI"]) expect(records.flatMap(({ absent }) => absent)).toEqual([]);
    expect(notesOf(records)).toEqual([]);
  },
);

test("every suite is listed with its question", async () => {
  const { stdout } = await call(process.execPath, [program, "--list"]);
  for (const name of suiteNames) expect(stdout).toMatch(new RegExp(`^${name} .*`, "m"));
  expect(stdout.match(/\?$/gm)).toHaveLength(Object.keys(questions).length);
});

test("a bad option ends the program with 1 and a message that names the option and --help", async () => {
  const failure = await call(process.execPath, [program, "--suite", "cold"]).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Expected --suite to be some of"),
  });
  expect(failure).toMatchObject({ stderr: expect.stringContaining("--help") });
});
