import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";
import { limitMs, endProcess, ServerClocks, waitUntil } from "@holdfast/test-kit";

import { direct, newKey, onSharedRedis, shared } from "../support/fault-fixture.ts";

const program = fileURLToPath(new URL("../support/cron-schedulers.mjs", import.meta.url));
const libraries = ["node-cron", "cron", "croner", "node-schedule"];

onSharedRedis("the schedulers of three processes", () => {
  test("run a job of 20 ms exactly once for each fire, with clocks up to 600 ms apart", async () => {
    const key = newKey();
    await using clocks = await ServerClocks.make(3);
    const lines: string[] = [];
    const children = clocks.clocks.map((clock, index) => {
      clock.set({ aheadMs: index * 300 });
      const child = spawn(process.execPath, [program, String(shared.port), key], {
        env: { ...process.env, NODE_OPTIONS: "", ...clock.env },
        stdio: ["ignore", "pipe", "inherit"],
      });
      createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
      return child;
    });
    try {
      await waitUntil(
        () => firesOf(lines).complete.length >= 2 * libraries.length,
        "two fires",
        limitMs(25_000),
      );
    } finally {
      await Promise.all(children.map(endProcess));
      await direct.flushdb(); // the keys that are kept
    }
    const { runs, complete } = firesOf(lines);
    expect(Object.values(runs).filter((count) => count > 1)).toEqual([]);
    expect(complete.map((fire) => [fire, runs[fire]])).toEqual(complete.map((fire) => [fire, 1]));
  });
});

/** How often each fire ran, and the fires of which all processes have reported a run or a skip. */
function firesOf(lines: readonly string[]): { runs: Record<string, number>; complete: string[] } {
  const runs: Record<string, number> = {};
  const reports: Record<string, number> = {};
  for (const [, result, fire] of lines.map((line) => /^(ran|skipped) (.+)$/.exec(line) ?? [])) {
    if (fire !== undefined) {
      reports[fire] = (reports[fire] ?? 0) + 1;
      runs[fire] = (runs[fire] ?? 0) + (result === "ran" ? 1 : 0);
    }
  }
  return { runs, complete: Object.keys(reports).filter((fire) => reports[fire] === 3) };
}
