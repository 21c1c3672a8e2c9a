import type { TestKiller } from "../mutant.ts";

const tests = "packages/holdfast/test";

/** The tests near a source, the cheapest first, by prefixes of both names. The first matching row applies. */
const table: readonly (readonly [source: string, rules: readonly string[], server: readonly string[]])[] = [
  [
    "drivers/redis/protocol/lua/common/latch",
    ["kinds/latch"],
    ["drivers/redis/protocol/scripts/latch", "integration/single/latch", "integration/single/conformance"],
  ],
  [
    "drivers/redis/protocol/lua/common/shared-lock",
    ["drivers/redis/redlock/"],
    ["drivers/redis/protocol/scripts/", "integration/single/conformance", "integration/redlock/conformance"],
  ],
  [
    "drivers/redis/protocol/lua/",
    ["drivers/redis/redlock/"],
    ["drivers/redis/protocol/scripts/", "drivers/redis/single/waiters", "integration/single/conformance"],
  ],
  ["drivers/redis/redlock/", ["drivers/redis/redlock/"], ["integration/redlock/"]],
  [
    "drivers/redis/single/latches",
    ["kinds/latch"],
    ["integration/single/latch", "integration/single/conformance"],
  ],
  ["drivers/redis/layouts/", [], ["integration/layouts/"]],
  ["drivers/redis/replicas/", [], ["integration/replicas/"]],
  [
    "drivers/redis/",
    ["drivers/redis/redlock/", "drivers/redis/single/late-requests", "drivers/redis/server/"],
    ["drivers/redis/", "integration/single/conformance", "integration/redlock/conformance"],
  ],
  ["drivers/memory/", ["drivers/memory/", "kinds/"], []],
  ["kinds/", ["kinds/", "drivers/memory/driver.test"], ["integration/single/conformance"]],
  [
    "",
    ["lease/", "local/", "runtime/", "validity", "options", "lock-state", "kinds/lock-scope"],
    ["integration/single/conformance"],
  ],
];

/** The tests that run against a mutant of a source, after the simulation. */
export function relatedTo(source: string): TestKiller[] {
  const [, rules, server] = table.find(([beginning]) =>
    source.startsWith(beginning),
  ) as (typeof table)[number];
  const killers = (level: TestKiller["level"], names: readonly string[]): TestKiller[] =>
    names.map((name) => ({ level, file: `${tests}/${name}` }));
  return [...killers("rules", rules), ...killers("server", server)];
}
