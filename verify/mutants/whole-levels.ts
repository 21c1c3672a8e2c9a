import { byKept, bySim, type Killer, type Level, type TestKiller } from "./mutant.ts";

/** All that a level has against a mutant. The names of files are beginnings. */
export const wholeLevels: Readonly<Record<Level, readonly [Killer, ...Killer[]]>> = {
  kept: [byKept()],
  sim: [bySim(1, 1_000)],
  rules: testsOf("rules", [
    "packages/holdfast/test/hold",
    "packages/holdfast/test/line",
    "packages/holdfast/test/timer-queue",
    "packages/holdfast/test/validity",
    "packages/holdfast/test/watchdog",
    "packages/holdfast/test/with-lock",
    "packages/holdfast/test/drivers/memory",
    "packages/holdfast/test/drivers/redis/batch",
    "packages/holdfast/test/drivers/redis/brackets",
    "packages/holdfast/test/drivers/redis/keys",
    "packages/holdfast/test/drivers/redis/late-requests",
    "packages/holdfast/test/drivers/redis/quorum/",
    "packages/holdfast/test/drivers/redis/server-time",
    "packages/holdfast/test/drivers/redis/fake-redis.test",
    "verify/test/fencing-rounds",
  ]),
  server: testsOf("server", [
    "packages/holdfast/test/drivers/redis.test",
    "packages/holdfast/test/drivers/redlock.test",
    "packages/holdfast/test/drivers/redis/contention",
    "packages/holdfast/test/drivers/redis/deaf-waiters",
    "packages/holdfast/test/drivers/redis/scripts/",
    "packages/holdfast/test/drivers/redis/fake-redis.property",
    "packages/holdfast/test/drivers/redis/unknown-outcome",
    "packages/holdfast/test/drivers/redis/waiters",
    "packages/holdfast/test/faults/",
  ]),
};

function testsOf(
  level: TestKiller["level"],
  [first, ...others]: readonly [string, ...string[]],
): [TestKiller, ...TestKiller[]] {
  return [{ level, file: first }, ...others.map((file) => ({ level, file }))];
}
