import { ChildProcess } from "node:child_process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { vi } from "vitest";

import { eventLimitMs } from "./time-limits.ts";

// Runs before each test file.

/** Vitest's own waits have a limit of 1 s, and no setting for it. */
type Wait = (condition: () => unknown, options?: object | number) => Promise<unknown>;
const waits = vi as unknown as Record<"waitFor" | "waitUntil", Wait & { isScaled?: boolean }>;
for (const name of ["waitFor", "waitUntil"] as const) {
  const wait = waits[name];
  if (!wait.isScaled) {
    waits[name] = Object.assign<Wait, object>(
      (condition, options = {}) =>
        wait(condition, typeof options === "number" ? options : { timeout: eventLimitMs, ...options }),
      { isScaled: true },
    );
  }
}

/** Workers that are threads accept no flag of V8. */
if (globalThis.gc === undefined) {
  setFlagsFromString("--expose-gc");
  globalThis.gc = runInNewContext("gc") as typeof globalThis.gc;
}

if (process.env["HOLDFAST_TEST_PROJECT"] === "unit") {
  (ChildProcess.prototype as unknown as { spawn: () => never }).spawn = () => {
    throw new Error(
      "A test of the project `unit` starts a process. Leave its file out of `unit` in vitest.config.ts",
    );
  };
}
