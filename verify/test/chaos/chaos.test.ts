import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { hasEtcd, hasMariaDb, hasPostgres, hasZooKeeper } from "@holdfast/test-kit/engines";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { engines } from "../../chaos/plan/engines.ts";
import { lockKinds, type LockKind } from "../../chaos/run/lock.ts";
import { parseOptions } from "../../chaos/options.ts";
import { engineNames, usualEngines, type EngineName, type Plan } from "../../chaos/plan/plan.ts";
import { planOf } from "../../chaos/plan/planner.ts";
import type { Verdict } from "../../chaos/judge/judge.ts";

// Runs `npm run verify:chaos` as a user does: for two minutes, and for a storm of 10 s with failovers.

const program = fileURLToPath(new URL("../../dist/chaos/main.js", import.meta.url));
const minutes = 2;
/** One storm of 10 s. With these seeds the plan has every kind of failover. */
const shortRun = { minutes: 0.4, seeds: { sentinel: 2, cluster: 3 } } as const;
/** Far fewer than on an idle machine. */
const minGrants = 200;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-chaos-test-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("a plan", () => {
  test.each(engineNames)(
    "has every kind of fault of %s in the first minute, and is the same for the same seed",
    (name) => {
      for (let seed = 0; seed < 20; seed += 1) {
        const plan = planFor(name, seed);
        const kinds = new Set(plan.storms.flatMap(({ faults }) => faults.map(({ kind }) => kind)));
        expect([...kinds].sort()).toEqual([...engines[name].faults].sort());
        expect(planFor(name, seed)).toEqual(plan);
      }
    },
  );

  test("lets only a minority of a quorum lose data or have a wrong clock in one storm", () => {
    for (let seed = 0; seed < 50; seed += 1) {
      for (const { faults } of planFor("redlock", seed).storms) {
        const unreliable = faults.filter(({ kind }) => /empty|step a clock/.test(kind));
        expect(new Set(unreliable.flatMap(({ nodes }) => nodes)).size).toBeLessThanOrEqual(2);
      }
    }
  });
});

describe("options", () => {
  test.each([
    [["--minutes", "0"], "Expected --minutes to be a number from 0.2 to 1440"],
    [
      ["--engine", "memcached"],
      `Expected --engine to be ${engineNames.join(", ")}, both or all, got "memcached"`,
    ],
    [["--nodes", "4"], "Expected --nodes to be 5 or 3"],
    [["--seed", "x"], "Expected --seed to be an integer"],
    [
      ["--engine", "redis", "--without", "guard"],
      "Expected --without to be durability, as the engine is redis",
    ],
  ])("%j are refused", (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });

  test("a run without a rule runs only the engine with that rule", () => {
    expect(parseOptions(["--without", "guard"]).engines).toEqual(["redlock"]);
  });

  test("the default engines are one server and Redlock, and `all` selects every engine", () => {
    expect(parseOptions([]).engines).toEqual(["redis", "redlock"]);
    expect(parseOptions(["--engine", "all"]).engines).toEqual(engineNames);
  });
});

test("chaos on one server and on Redlock of five violates nothing", async () => {
  const { code, output } = await run(["--minutes", String(minutes), "--folder", folder]);
  for (const name of usualEngines) {
    const { violations, figures } = await readVerdict(name, output);
    expect(violations, output).toEqual([]);
    expect(figures.grants).toBeGreaterThan(minGrants);
    expect(figures.losses).toBeGreaterThan(5);
    expect(Object.keys(figures.faultsByKind).sort()).toEqual([...engines[name].faults].sort());
    expect(figures.lostWithTokens).toBe(0);
    expect(Object.keys(figures.byLock)).toEqual(lockNamesOf(name));
    for (const [lock, { grants }] of Object.entries(figures.byLock)) {
      expect(grants, lock).toBeGreaterThan(0);
    }
    expect(figures.byLock.read?.downgrades).toBeGreaterThan(0);
    expect(figures.byLock.reentrant?.nested).toBeGreaterThan(0);
    if (engines[name].hasLatches) {
      const { released, expired, opened } = figures.latches;
      expect(Math.min(released, expired, opened)).toBeGreaterThan(0);
    }
    expect(existsSync(join(folder, name, "report.md"))).toBe(true);
    expect(existsSync(join(folder, name, "timeline-hot.svg"))).toBe(true);
  }
  expect(code, output).toBe(0);
}, 420_000);

test.each(["sentinel", "cluster"] as const)(
  "chaos on %s: tokens rise across failovers, no call hangs, and every loss is reported",
  async (name) => {
    const seed = String(shortRun.seeds[name]);
    const own = ["--engine", name, "--minutes", String(shortRun.minutes), "--seed", seed];
    const { code, output } = await run([...own, "--folder", folder]);
    const { violations, figures } = await readVerdict(name, output);
    expect(violations, output).toEqual([]);
    expect(code, output).toBe(0);
    const wanted = engines[name].faults.filter((kind) => /primary|slot/.test(kind));
    expect(Object.keys(figures.faultsByKind)).toEqual(expect.arrayContaining(wanted));
    expect(figures.failovers.length).toBeGreaterThanOrEqual(2);
    expect(figures.grants).toBeGreaterThan(minGrants / 4);
    expect(figures.lostWithTokens).toBe(0);
    expect(await readFile(join(folder, name, "report.md"), "utf8")).toContain("## Failovers");
    console.info(
      `${name}: ${figures.failovers.length} failovers, nothing granted for ` +
        `${figures.failovers.map(({ withoutGrantMs }) => withoutGrantMs).join(" and ")} ms, ` +
        `${figures.conflictsAcrossFailovers} conflicts across them; ${figures.grants} grants, ${figures.losses} losses reported`,
    );
  },
  120_000,
);

describe.each([
  ["postgres", hasPostgres],
  ["mysql", hasMariaDb],
  ["etcd", hasEtcd],
  ["zookeeper", hasZooKeeper],
] as const)("chaos on %s", (name, isInstalled) => {
  test.runIf(isInstalled || process.env["CI"])(
    "violates nothing",
    async () => {
      const { code, output } = await run(["--engine", name, "--minutes", "0.2", "--folder", folder]);
      const { violations, figures } = await readVerdict(name, output);
      expect(violations, output).toEqual([]);
      expect(code, output).toBe(0);
      expect(figures.grants).toBeGreaterThan(minGrants / 4);
      expect(figures.faults).toBeGreaterThan(0);
      expect(figures.lostWithTokens).toBe(0);
    },
    240_000,
  );
});

test("the checker detects a server that loses its data at a restart", async () => {
  const own = join(folder, "without");
  const { code, output } = await run(["--minutes", "0.5", "--without", "durability", "--folder", own]);
  const { violations } = JSON.parse(await readFile(join(own, "redis", "verdict.json"), "utf8")) as Verdict;
  expect(
    violations.map(({ rule }) => rule),
    output,
  ).toContain("exclusion");
  expect(code).toBe(1);
}, 120_000);

test("the checker detects votes of restarted nodes that vote at once", async () => {
  const own = join(folder, "without-guard");
  const { code, output } = await run(["--minutes", "0.4", "--without", "guard", "--folder", own]);
  const { violations } = JSON.parse(await readFile(join(own, "redlock", "verdict.json"), "utf8")) as Verdict;
  expect(
    violations.map(({ rule }) => rule),
    output,
  ).toContain("votes");
  expect(code).toBe(1);
}, 120_000);

function lockNamesOf(name: EngineName): LockKind[] {
  const { hasReadWrite, hasSemaphores } = engines[name];
  return lockKinds.filter((lock) => {
    return lock === "semaphore" ? hasSemaphores : (lock !== "read" && lock !== "write") || hasReadWrite;
  });
}

function planFor(name: EngineName, seed: number): Plan {
  const engine = engines[name];
  return planOf(engine, {
    seed,
    minutes: minutes / usualEngines.length,
    nodeCount: engine.nodeCounts[0] as number,
    without: null,
  });
}

async function readVerdict(name: EngineName, output: string): Promise<Verdict> {
  const path = join(folder, name, "verdict.json");
  expect(existsSync(path), output).toBe(true);
  return JSON.parse(await readFile(path, "utf8")) as Verdict;
}

async function run(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  if (!existsSync(program)) {
    throw new Error("verify is not built: run `npm run build`");
  }
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const endWithUs = (): void => void child.kill("SIGTERM");
  process.once("exit", endWithUs);
  const [code] = (await once(child, "close")) as [number | null];
  process.off("exit", endWithUs);
  return { code, output };
}
