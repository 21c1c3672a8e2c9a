import { byKept, bySim, type Killer, type Level, type TestKiller } from "./mutant.ts";

/** All runs of a level. File names are prefixes. */
export const fullSuites: Readonly<Record<Level, readonly [Killer, ...Killer[]]>> = {
  kept: [byKept()],
  sim: [bySim(1, 1_000)],
  rules: testsOf("rules", [
    "packages/holdfast/test/lease/",
    "packages/holdfast/test/local/",
    "packages/holdfast/test/runtime/timer-queue",
    "packages/holdfast/test/validity",
    "packages/holdfast/test/drivers/memory/",
    "packages/holdfast/test/drivers/redis/server/",
    "packages/holdfast/test/drivers/redis/protocol/keys",
    "packages/holdfast/test/drivers/redis/single/late-requests",
    "packages/holdfast/test/drivers/redis/redlock/",
    "packages/holdfast/test/fake-redis/fake-redis.test",
    "verify/test/model/fencing-rounds",
  ]),
  server: testsOf("server", [
    "packages/holdfast/test/integration/",
    "packages/holdfast/test/drivers/redis/single/contention",
    "packages/holdfast/test/drivers/redis/single/unsubscribed-waiters",
    "packages/holdfast/test/drivers/redis/protocol/scripts/",
    "packages/holdfast/test/fake-redis/locks.property",
    "packages/holdfast/test/drivers/redis/single/unknown-outcome",
    "packages/holdfast/test/drivers/redis/single/waiters",
  ]),
};

function testsOf(
  level: TestKiller["level"],
  [first, ...others]: readonly [string, ...string[]],
): [TestKiller, ...TestKiller[]] {
  return [{ level, file: first }, ...others.map((file) => ({ level, file }))];
}
