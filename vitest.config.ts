import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests use the sources of our own packages, so that they need no build. The rest are conditions of Node: the ES modules of `module` may
// need a bundler.
const conditions = ["@holdfast/source", "node", "development|production"];

/**
 * Starts the slow files first. Vitest starts the largest file first, but the simulation and the conformance tests have small files. If one of
 * them starts last, the other core is idle until its end.
 */
class SlowTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      /verify\/test\/|conformance\.test\.ts$/.test(moduleId) ? 0 : 1;
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

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
