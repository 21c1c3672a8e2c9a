import { byKept, bySim, type Killer, type TestKiller } from "../mutant.ts";

const tests = "packages/holdfast/test";
const conformance = "integration/single/conformance";
const quickRuns = 150;

/** The tests near a source, the cheapest first, by prefixes of both names. The first matching row applies. */
const table: readonly (readonly [source: string, rules: readonly string[], server: readonly string[]])[] = [
  [
    "drivers/redis/protocol/lua/common/latch",
    ["kinds/latch"],
    ["drivers/redis/protocol/scripts/latch", "integration/single/latch", conformance],
  ],
  [
    "drivers/redis/protocol/lua/",
    ["drivers/redis/redlock/"],
    ["drivers/redis/protocol/scripts/", "drivers/redis/single/waiters", conformance],
  ],
  ["drivers/redis/redlock/", ["drivers/redis/redlock/"], ["integration/redlock/"]],
  ["drivers/redis/single/latches", ["kinds/latch"], ["integration/single/latch", conformance]],
  ["drivers/redis/layouts/", [], ["integration/layouts/"]],
  ["drivers/redis/replicas/", [], ["drivers/redis/replicas/", "integration/replicas/"]],
  ["drivers/redis/upstash/", [], ["integration/upstash/"]],
  ["drivers/redis/processes/", [], ["drivers/redis/processes/"]],
  [
    "drivers/redis/",
    ["drivers/redis/redlock/", "drivers/redis/single/late-requests", "drivers/redis/server/"],
    ["drivers/redis/", conformance, "integration/redlock/conformance"],
  ],
  ["drivers/memory/", ["drivers/memory/", "kinds/"], []],
  ["drivers/nacos/", ["drivers/nacos/", "drivers/store/"], []],
  ["drivers/store/", ["drivers/store/", "drivers/zookeeper/"], ["integration/postgres/"]],
  ["drivers/postgres/", [], ["integration/postgres/"]],
  ["drivers/mysql/", [], ["integration/mysql/"]],
  ["drivers/etcd/", [], ["integration/etcd/"]],
  ["drivers/zookeeper/", ["drivers/zookeeper/"], ["integration/zookeeper/"]],
  ["kinds/", ["kinds/", "drivers/memory/driver.test"], [conformance]],
  ...["compat", "cron", "fencing", "optimistic", "routing", "operator", "telemetry", "watchdog-thread"].map(
    (folder) => [`${folder}/`, [], [`${folder}/`]] as const,
  ),
  ["", ["lease/", "local/", "runtime/", "validity", "options", "lock-state", "kinds/"], [conformance]],
];

/** The sources without a part in the simulation. */
const notSimulated =
  /^(drivers\/(nacos|store|postgres|mysql|etcd|zookeeper)|drivers\/redis\/(layouts|replicas|upstash)|compat|cron|fencing|optimistic|otel|prometheus|routing|operator|watchdog-thread)\//;

/** The runs against a mutant of a source: the simulation, and the tests near the source. */
export function relatedTo(source: string): [Killer, ...Killer[]] {
  const [, rules, server] = table.find(([beginning]) =>
    source.startsWith(beginning),
  ) as (typeof table)[number];
  const killers = (level: TestKiller["level"], names: readonly string[]): TestKiller[] =>
    names.map((name) => ({ level, file: `${tests}/${name}` }));
  const near = [...killers("rules", rules), ...killers("server", server)];
  return (notSimulated.test(source) ? near : [byKept(), bySim(1, quickRuns), ...near]) as [
    Killer,
    ...Killer[],
  ];
}
