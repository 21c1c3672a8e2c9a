import { spawnSync } from "node:child_process";

import { describe } from "vitest";
import { debianProgram, debianServers, redisProgram } from "@holdfast/test-kit";

/**
 * `describe` for tests that need a server. Without a server the tests are skipped with a warning.
 * In CI a missing server is an error.
 */
export const onRedis: ReturnType<typeof describe.skipIf> = describeWith(
  "redis-server",
  isThere(redisProgram),
);

/**
 * `describe` for a rule that servers could break in different ways: on the machine's server, and on those that the set-up script unpacks.
 * If one of those could not be unpacked, its tests are skipped with a warning, also in CI.
 */
export function onEachRedis(name: string, tests: (program: string) => void): void {
  onRedis(`${name}, on the machine's server`, () => tests(redisProgram));
  for (const server of ["redis8", "valkey8"] as const) {
    const [{ title }, program] = [debianServers[server], debianProgram(server)];
    skipUnless(title, isThere(program))(`${name}, on ${title}`, () => tests(program));
  }
}

/** `describe` for tests that compare with a program in Python. */
export const onPython: ReturnType<typeof describe.skipIf> = describeWith("python3", isThere("python3"));

/** Whether servers can have clocks of their own, which needs Linux and a C compiler. */
export const hasClocks: boolean = process.platform === "linux" && isThere("cc");

/** `describe` for tests of servers with their own clocks. */
export const describeWithClocks: ReturnType<typeof describe.skipIf> = describeWith(
  "a C compiler on Linux",
  hasClocks,
);

/** `describe` for tests that need servers of `startLongUp`. */
export const onLongUpRedis: ReturnType<typeof describe.skipIf> = describeWith(
  "redis-server or a C compiler on Linux",
  isThere(redisProgram) && hasClocks,
);

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"]).error === undefined;
}

/** `describe` for tests that need a program. Without it the tests are skipped with a warning. In CI its absence is an error. */
export function describeWith(need: string, isMet: boolean): ReturnType<typeof describe.skipIf> {
  if (!isMet && process.env["CI"]) {
    throw new Error(`${need} is missing, and in CI these tests must not be skipped`);
  }
  return skipUnless(need, isMet);
}

function skipUnless(need: string, isMet: boolean): ReturnType<typeof describe.skipIf> {
  if (!isMet) {
    console.warn(`\n!!! ${need} is missing: the tests that need it are SKIPPED !!!\n`);
  }
  return describe.skipIf(!isMet);
}
