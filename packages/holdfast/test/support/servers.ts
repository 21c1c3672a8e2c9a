import { spawnSync } from "node:child_process";

import { describe } from "vitest";
import { redisProgram } from "@holdfast/test-kit";

/**
 * `describe` for tests that need a server. Without a server the tests are skipped with a warning.
 * In CI a missing server is an error.
 */
export const onRedis: ReturnType<typeof describe.skipIf> = describeWith(
  "redis-server",
  isThere(redisProgram),
);

/** `describe` for tests that compare with a program in Python. */
export const onPython: ReturnType<typeof describe.skipIf> = describeWith("python3", isThere("python3"));

/** `describe` for tests of servers with their own clocks. They need Linux and a C compiler. */
export const describeWithClocks: ReturnType<typeof describe.skipIf> = describeWith(
  "a C compiler on Linux",
  process.platform === "linux" && isThere("cc"),
);

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"]).error === undefined;
}

/** `describe` for tests that need a program. Without it the tests are skipped with a warning. In CI its absence is an error. */
export function describeWith(need: string, isMet: boolean): ReturnType<typeof describe.skipIf> {
  if (!isMet && process.env["CI"]) {
    throw new Error(`${need} is missing, and in CI these tests must not be skipped`);
  }
  if (!isMet) {
    console.warn(`\n!!! ${need} is missing: the tests that need it are SKIPPED !!!\n`);
  }
  return describe.skipIf(!isMet);
}
