import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { parseOptions } from "../../interop/options.ts";
import { pairs } from "../../interop/pairs.ts";
import { judgeHistory } from "../../interop/run/judge.ts";
import type { PairResult } from "../../interop/run/run-pair.ts";
import { granted, historyFixture, released } from "../chaos/planted-history.ts";

// Runs `npm run verify:interop` as a user does, with the libraries of npm.

const program = fileURLToPath(new URL("../../dist/interop/main.js", import.meta.url));
const { folder, plant } = historyFixture();

describe("npm run verify:interop", () => {
  // 25 processes, perhaps on a loaded machine
  const within = { timeout: 120_000 };

  test(
    "the libraries of npm and this one exclude each other, and hand the lock over in turn",
    within,
    async () => {
      const libraries = pairs.filter(({ toolchain }) => toolchain === "npm").map(({ name }) => name);
      const short = ["--seconds", "1", "--rounds", "1", "--no-faults", "--folder", join(folder(), "runs")];
      const runs = await Promise.all(libraries.map((name) => run("--json", "--only", name, ...short)));
      expect(runs.map(({ code, stderr }) => (code === 0 ? "" : stderr))).toEqual(libraries.map(() => ""));
      const results = runs.flatMap(({ stdout }) => JSON.parse(stdout) as PairResult[]);
      expect(results.map(({ pair }) => pair.name)).toEqual(libraries);
      for (const { pair, violations, errors, contention, handover } of results) {
        expect([...violations, ...errors], pair.name).toEqual([]);
        expect(contention.turns.ours, pair.name).toBeGreaterThan(0);
        expect(contention.turns.theirs, pair.name).toBeGreaterThan(0);
        expect([handover.times.ours.length, handover.times.theirs.length], pair.name).toEqual([1, 1]);
      }
    },
  );

  test("names an invalid option, the expected value and the actual value", async () => {
    const { code, stdout, stderr } = await run("--only", "jedis");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^verify:interop: Expected --only to be some of redlock, .*, got "jedis"\n$/);
  });
});

describe("the judge", () => {
  test("accepts holders one after another", async () => {
    await plant({
      clients: {
        "client-ours-1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-theirs-2": [...granted(1, 201, -1), ...released(1, 300)],
      },
    });
    expect(await judgeHistory(folder())).toEqual([]);
  });

  test("detects a grant beside a valid one", async () => {
    await plant({
      clients: {
        "client-ours-1": [...granted(1, 100, 10), ...released(1, 200)],
        "client-theirs-2": [...granted(1, 199, -1), ...released(1, 300)],
      },
    });
    expect(await judgeHistory(folder())).toMatchObject([{ rule: "exclusion" }]);
  });

  test("detects a falling fencing token", async () => {
    await plant({
      clients: {
        "client-ours-1": [
          ...granted(1, 100, 10),
          ...released(1, 200),
          ...granted(2, 300, 9),
          ...released(2, 400),
        ],
      },
    });
    expect(await judgeHistory(folder())).toContainEqual(expect.objectContaining({ rule: "tokens" }));
  });
});

describe("options", () => {
  test("default to all libraries", () => {
    expect(parseOptions([])).toMatchObject({ pairs, seconds: 30, rounds: 50, hasFaults: true });
  });

  test("name an invalid number", () => {
    expect(() => parseOptions(["--rounds", "0"])).toThrow(/--rounds .*"0"/);
  });
});

/** The built program, as users run it. */
async function run(
  ...args: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  if (!existsSync(program)) {
    throw new Error("It is not built: run `npm run build`");
  }
  const child = spawn(process.execPath, [program, ...args]);
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output };
}
