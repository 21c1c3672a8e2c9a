import { spawnSync } from "node:child_process";

import { describe } from "vitest";
import { redisProgram } from "@holdfast/test-kit";

/**
 * `describe` for tests that need a server: where there is none they are skipped, and loudly.
 * In CI a missing server is an error.
 */
export const onRedis: ReturnType<typeof describe.skipIf> = describeWith(
  "redis-server",
  isThere(redisProgram),
);

/** `describe` for tests that give servers clocks of their own: that takes Linux and a C compiler. */
export const describeWithClocks: ReturnType<typeof describe.skipIf> = describeWith(
  "a C compiler on Linux",
  process.platform === "linux" && isThere("cc"),
);

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"]).error === undefined;
}

function describeWith(need: string, isMet: boolean): ReturnType<typeof describe.skipIf> {
  if (!isMet && process.env["CI"]) {
    throw new Error(`There is no ${need}; in CI these tests may not be skipped`);
  }
  if (!isMet) {
    console.warn(`\n!!! There is no ${need}: tests that need it are SKIPPED !!!\n`);
  }
  return describe.skipIf(!isMet);
}
