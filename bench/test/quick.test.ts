import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";

import { fromJson, type RunRecord } from "../src/report/record.ts";
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

interface Outcome {
  readonly record: RunRecord;
  readonly files: readonly string[];
}

async function runQuick(...names: readonly string[]): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-bench-test-"));
  folders.push(folder);
  const options = ["--quick", "--only", contestants.join(","), "--suite", names.join(",")];
  await call(process.execPath, [program, ...options, "--out", folder], { timeout: mostMs });
  const files = await readdir(folder);
  const json = files.find((file) => file.endsWith(".json")) ?? "";
  return { record: fromJson(await readFile(join(folder, json), "utf8")), files };
}

/** Checks that every contestant has figures in every case, and that all files exist. */
function expectComplete({ record, files }: Outcome, names: readonly string[]): void {
  expect(record.suites.map(({ name }) => name)).toEqual(names);
  for (const { name, contestants, cases } of record.suites) {
    const expected = contestants.flatMap((contestant) => cases.map((label) => [name, contestant, label]));
    const seen = record.samples.filter(({ suite }) => suite === name);
    expect(seen.map(({ contestant, case: label }) => [name, contestant, label])).toEqual(expected);
    expect(files.filter((file) => file.endsWith(`-${name}.svg`))).toHaveLength(1);
  }
}

function figure({ samples }: RunRecord, of: { case: string; contestant?: string; id: string }): number {
  const sample = samples.find(
    (one) =>
      one.case.startsWith(of.case) && (of.contestant === undefined || one.contestant === of.contestant),
  );
  return sample?.values[of.id] ?? Number.NaN;
}

test.concurrent(
  "the suites for one server run: load, waiting, renewal and distance",
  { timeout: mostMs },
  async () => {
    const names = ["uncontended", "hot", "skew", "waiting", "renewals", "latency"];
    const outcome = await runQuick(...names);
    expectComplete(outcome, names);
    expect(outcome.record.notes).toEqual([]);
    // Two round trips take at least 8 ms, regardless of the load on the machine. The waits are no measure here, because a pending
    // wait counts with its duration so far.
    const turnMs = figure(outcome.record, {
      case: "2 ms each way, alone",
      contestant: "holdfast",
      id: "turnMs",
    });
    expect(turnMs < 7).toBe(false);
  },
);

test.concurrent(
  "the suites for one server run: kinds, memory, the service",
  { timeout: mostMs },
  async () => {
    const names = ["kinds", "memory", "churn", "service"];
    const outcome = await runQuick(...names);
    expectComplete(outcome, names);
    const { record } = outcome;
    expect(record.notes).toEqual([]);
    expect(figure(record, { case: "a held lease", contestant: "holdfast", id: "server" })).toBeGreaterThan(
      100,
    );
    expect(figure(record, { case: "500 keys", contestant: "holdfast", id: "cycles" })).toBeGreaterThan(0);
  },
);

/** These ratios do not depend on the speed of the machine. */
test.concurrent(
  "the formulae of memory and of connections match the measurements",
  { timeout: mostMs },
  async () => {
    const outcome = await runQuick("capacity");
    expectComplete(outcome, ["capacity"]);
    const { record } = outcome;
    expect(figure(record, { case: "connections", id: "ratio" })).toBe(1);
    for (const what of ["leases", "waiters in one", "waiters in a queue each"]) {
      const ratio = figure(record, { case: `bytes in Redis: ${what}`, id: "ratio" });
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.3);
    }
    const left = figure(record, { case: "bytes in Redis: keys that were used", id: "measured" });
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
    const outcome = await runQuick(...names);
    expectComplete(outcome, names);
    const missing = outcome.record.suites.flatMap(({ absent }) => absent);
    if (process.env["CI"]) expect(missing).toEqual([]);
    expect(outcome.record.notes).toEqual([]);
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
