import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { limitMs } from "@holdfast/test-kit";
import { describe, expect, test } from "vitest";

import { engines } from "../../chaos/plan/engines.ts";
import { usualEngines, type EngineName } from "../../chaos/plan/plan.ts";
import { lockKinds, type LockKind } from "../../chaos/run/lock.ts";
import { ChaosRuns } from "./chaos-runs.ts";

const minutes = 2;
/** One storm of 10 s. With these seeds the plan has every kind of failover. */
const shortRun = { minutes: 0.4, seeds: { sentinel: 2, cluster: 3 } } as const;
/** Far fewer than on an idle machine. */
const minGrants = 200;

describe("with every rule", () => {
  const chaos = new ChaosRuns();

  test(
    "chaos on one server and on Redlock of five violates nothing",
    async () => {
      const { code, output } = await chaos.run("--minutes", String(minutes));
      for (const name of usualEngines) {
        const { violations, figures } = await chaos.verdict(name, output);
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
        expect(existsSync(join(chaos.folder, name, "report.md"))).toBe(true);
      }
      expect(code, output).toBe(0);
    },
    limitMs(420_000),
  );

  test.each(["sentinel", "cluster"] as const)(
    "chaos on %s: tokens rise across failovers, no call hangs, and every loss is reported",
    async (name) => {
      const seed = String(shortRun.seeds[name]);
      const own = ["--engine", name, "--minutes", String(shortRun.minutes), "--seed", seed];
      const { code, output } = await chaos.run(...own);
      const { violations, figures } = await chaos.verdict(name, output);
      expect(violations, output).toEqual([]);
      expect(code, output).toBe(0);
      const wanted = engines[name].faults.filter((kind) => /primary|slot/.test(kind));
      expect(Object.keys(figures.faultsByKind)).toEqual(expect.arrayContaining(wanted));
      expect(figures.failovers.length).toBeGreaterThanOrEqual(2);
      expect(figures.grants).toBeGreaterThan(minGrants / 4);
      expect(figures.lostWithTokens).toBe(0);
      expect(await readFile(join(chaos.folder, name, "report.md"), "utf8")).toContain("## Failovers");
      console.info(
        `${name}: ${figures.failovers.length} failovers, nothing granted for ` +
          `${figures.failovers.map(({ withoutGrantMs }) => withoutGrantMs).join(" and ")} ms, ` +
          `${figures.conflictsAcrossFailovers} conflicts across them; ${figures.grants} grants, ${figures.losses} losses reported`,
      );
    },
  );
});

describe("without a rule", () => {
  const chaos = new ChaosRuns();

  test("the checker detects a server that loses its data at a restart", async () => {
    const { code, output } = await chaos.run("--minutes", "0.5", "--without", "durability");
    const { violations } = await chaos.verdict("redis", output);
    expect(
      violations.map(({ rule }) => rule),
      output,
    ).toContain("exclusion");
    expect(code).toBe(1);
  });

  test("the checker detects votes of restarted nodes that vote at once", async () => {
    const { code, output } = await chaos.run("--minutes", "0.4", "--without", "guard");
    const { violations } = await chaos.verdict("redlock", output);
    expect(
      violations.map(({ rule }) => rule),
      output,
    ).toContain("votes");
    expect(code).toBe(1);
  });
});

function lockNamesOf(name: EngineName): LockKind[] {
  const { hasReadWrite, hasSemaphores } = engines[name];
  return lockKinds.filter((lock) => {
    return lock === "semaphore" ? hasSemaphores : (lock !== "read" && lock !== "write") || hasReadWrite;
  });
}
