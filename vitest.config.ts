import { defineConfig } from "vitest/config";

import SlowTestsFirst from "./scripts/slow-tests.mjs";

// Tests use the sources of our own packages, so that they need no build. The rest are conditions of Node: the ES modules of `module` may
// need a bundler.
const conditions = ["@holdfast/source", "node", "development|production"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "examples/*/test/**/*.test.ts",
      "bench/test/**/*.test.ts",
      "verify/test/**/*.test.ts",
      "scripts/test/**/*.test.ts",
    ],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: "forks",
    maxWorkers: 4, // most tests wait most of the time, and they are written for machines that are busy
    sequence: { sequencer: SlowTestsFirst },
    execArgv: ["--expose-gc"],
    reporters: ["default", "./scripts/plain-reporter.mjs"],
  },
});
