import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests use the sources of our own packages, so that they need no build. The rest are conditions of Node: the ES modules of `module` may
// need a bundler.
const conditions = ["@holdfast/source", "node", "development|production"];

/** All tests of one kind of file name. `*.verify.ts` takes minutes, and runs by `npm run verify`. */
const filesNamed = (suffix: string): string[] =>
  ["packages/*", "examples/*", "bench", "scripts", "verify"].map(
    (folder) => `${folder}/test/**/*.${suffix}.ts`,
  );

/** Tests within their own process. Its set-up refuses to start another process. */
const unit = [
  "bench/test/*.test.ts",
  "examples/orders/test/{report,stock}.test.ts",
  "packages/console/test/*.test.ts",
  "packages/holdfast/test/{diagnostics,diagnostics-shapes,errors,lock-state,options,plain-values,validity}.test.ts",
  "packages/holdfast/test/{kinds,local,operator,testing}/**/*.test.ts",
  "packages/holdfast/test/lease/!(lease-leaks).test.ts",
  "packages/holdfast/test/runtime/!(clock).test.ts",
  "packages/holdfast/test/compat/redis-semaphore/options.test.ts",
  "packages/holdfast/test/cron/{once-per-fire,run-coordinator}.test.ts",
  "packages/holdfast/test/drivers/connect/{etcd,http,nacos,url,zookeeper}.test.ts",
  "packages/holdfast/test/drivers/{memory,store,zookeeper}/*.test.ts",
  "packages/holdfast/test/drivers/nacos/acquire.test.ts",
  "packages/holdfast/test/drivers/redis/options.test.ts",
  "packages/holdfast/test/drivers/redis/protocol/{keys,messages}.test.ts",
  "packages/holdfast/test/drivers/redis/{redlock,server}/**/*.test.ts",
  "packages/holdfast/test/drivers/redis/single/{clones-apart,commands,handed-over,late-clean-up,late-requests,repeated-try}.test.ts",
  "packages/holdfast/test/fake-redis/{fake-redis,time}.test.ts",
  "packages/holdfast/test/optimistic/optimistic.test.ts",
  "packages/holdfast/test/routing/{murmur3,ring,ring.property}.test.ts",
  "packages/server/test/{doctor-version,history-limits}.test.ts",
  "scripts/test/{error-codes,instruments,manifests,workflows}.test.ts",
  "verify/test/{interop,model,runtimes,trace}/*.test.ts",
  "verify/test/mutants/!(trial).test.ts",
  "verify/test/sim/!(command|replay).test.ts",
  "verify/test/chaos/check*.test.ts",
];

/** The few tests that measure real time, one after another, with nothing beside them. */
const timing: string[] = ["cluster/dead-shard", "single/frozen-server", "single/load"].map(
  (name) => `packages/holdfast/test/integration/${name}.test.ts`,
);

/** How many times slower this machine is now than an idle one on which a fixed piece of work takes `idleMs`: from 1 to 10. */
function timeFactor(): number {
  const idleMs = 360;
  const begun = performance.now();
  let state = 1;
  for (let round = 0; round < 300_000_000; round += 1) {
    state = Math.imul(state ^ round, 0x9e3779b1);
  }
  const factor = (performance.now() - begun) / idleMs;
  return state === 0 ? 10 : Math.min(10, Math.max(1, factor));
}

// The programs of the tests measure no second time.
process.env["HOLDFAST_TIME_FACTOR"] ??= timeFactor().toFixed(2);
const { eventLimitMs, limitMs } = await import("./test-kit/src/time-limits.ts");

/** Starts the files of one project after another, and in each the slowest first: if one of them starts last, the other core is idle. */
class SlowTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      /conformance\.test\.ts$|chaos|failover|property/.test(moduleId) ? 0 : 1;
    const order = (file: TestSpecification): string => `${file.project.name} ${rank(file)}`;
    return (await super.sort(files)).sort((a, b) => order(a).localeCompare(order(b)));
  }
}

const project = (name: string, groupOrder: number, test: object): object => ({
  extends: true,
  test: { name, env: { HOLDFAST_TEST_PROJECT: name }, sequence: { groupOrder }, ...test },
});

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    testTimeout: limitMs(120_000),
    hookTimeout: limitMs(120_000),
    teardownTimeout: limitMs(10_000),
    expect: { poll: { timeout: eventLimitMs } },
    setupFiles: ["./test-kit/src/vitest-setup.ts"],
    sequence: { sequencer: SlowTestsFirst },
    reporters: ["default", "./scripts/plain-reporter.mjs"],
    projects: [
      project("unit", 1, { include: unit, pool: "threads", isolate: false, maxWorkers: 2 }),
      project("servers", 2, {
        include: filesNamed("test"),
        exclude: [...unit, ...timing],
        pool: "forks",
        isolate: false,
        maxWorkers: 6, // tests on real servers mostly wait
      }),
      project("timing", 3, { include: timing, pool: "forks", isolate: false, maxWorkers: 1 }),
      project("verify", 4, {
        include: filesNamed("verify"),
        pool: "forks",
        maxWorkers: 2,
      }),
    ],
  },
});
