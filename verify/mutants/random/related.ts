import type { TestKiller } from "../mutant.ts";

const tests = "packages/holdfast/test";

/** Which tests are near a source, the cheapest first: by the beginnings of both names. The first that fits applies. */
const table: readonly (readonly [source: string, rules: readonly string[], server: readonly string[]])[] = [
  [
    "drivers/redis/lua/_latch",
    ["kinds/latch"],
    ["drivers/redis/scripts/latch", "faults/latch", "drivers/redis.test"],
  ],
  [
    "drivers/redis/lua/_share",
    ["drivers/redis/quorum/"],
    ["drivers/redis/scripts/", "drivers/redis.test", "drivers/redlock.test"],
  ],
  [
    "drivers/redis/lua/",
    ["drivers/redis/quorum/"],
    ["drivers/redis/scripts/", "drivers/redis/waiters", "drivers/redis.test"],
  ],
  ["drivers/redis/quorum/", ["drivers/redis/quorum/"], ["drivers/redlock.test", "faults/redlock"]],
  ["drivers/redis/latch", ["kinds/latch"], ["faults/latch", "drivers/redis.test"]],
  ["drivers/redis/replica", [], ["faults/replica", "faults/min-replicas"]],
  [
    "drivers/redis/",
    ["drivers/redis/quorum/", "drivers/redis/late-requests", "drivers/redis/b"],
    ["drivers/redis/", "drivers/redis.test", "drivers/redlock.test"],
  ],
  ["drivers/memory", ["drivers/memory", "kinds/"], []],
  ["kinds/", ["kinds/", "drivers/memory.test"], ["drivers/redis.test"]],
  [
    "",
    [
      "hold",
      "line",
      "timer-queue",
      "validity",
      "watch",
      "with-lock",
      "pool",
      "queue",
      "lateness",
      "options",
      "frames",
      "state",
    ],
    ["drivers/redis.test"],
  ],
];

/** What is run against a mutant of a source, after the simulation. */
export function relatedTo(source: string): TestKiller[] {
  const [, rules, server] = table.find(([beginning]) =>
    source.startsWith(beginning),
  ) as (typeof table)[number];
  const killers = (level: TestKiller["level"], names: readonly string[]): TestKiller[] =>
    names.map((name) => ({ level, file: `${tests}/${name}` }));
  return [...killers("rules", rules), ...killers("server", server)];
}
