// The order of the test files. Without the results of an earlier run Vitest starts the largest file first, but some small files are slow.
// If one of them starts last, the other core is idle until its end.

import { relative } from "node:path";

import { BaseSequencer } from "vitest/node";

/** The files that take 20 s and more. Files that compute follow files that wait, because they use different resources. */
export const slowTests = [
  "verify/test/chaos/chaos.test.ts",
  "packages/holdfast/test/fake-redis/locks.property.test.ts",
  "packages/holdfast/test/integration/sentinel/failover.test.ts",
  "verify/test/mutants/mutants.test.ts",
  "packages/holdfast/test/integration/single/conformance.test.ts",
  "verify/test/sim/sim.test.ts",
  "packages/holdfast/test/compat/redlock/mixed-fleet.test.ts",
  "packages/cli/test/docs.test.ts",
  "packages/holdfast/test/integration/etcd/cluster.test.ts",
  "packages/holdfast/test/integration/cluster/conformance.test.ts",
  "bench/test/quick.test.ts",
  "packages/holdfast/test/integration/postgres/conformance.test.ts",
  "verify/test/model/model.test.ts",
  "packages/holdfast/test/compat/redis-semaphore/fleet.test.ts",
  "packages/holdfast/test/integration/sentinel/conformance.test.ts",
  "verify/test/sim/regressions.test.ts",
  "packages/holdfast/test/integration/cluster/failover.test.ts",
  "packages/holdfast/test/drivers/redis/single/contention.test.ts",
  "packages/cli/test/documents.test.ts",
  "packages/holdfast/test/integration/redlock/clocks.test.ts",
  "packages/server/test/conformance.test.ts",
  "verify/test/sim/engines.test.ts",
  "packages/holdfast/test/drivers/nacos/conformance.test.ts",
  "verify/test/mutants/random.test.ts",
  "packages/holdfast/test/watchdog-thread/blocked.test.ts",
  "verify/test/compare/compare.test.ts",
  "verify/test/runtimes/runtimes.test.ts",
  "packages/holdfast/test/integration/redlock/conformance.test.ts",
  "verify/test/mutants/trial.test.ts",
  "packages/holdfast/test/integration/single/client-settings.test.ts",
  "packages/holdfast/test/drivers/nacos/faults.test.ts",
  "packages/cli/test/service.test.ts",
  "packages/server/test/console-access.test.ts",
  "packages/holdfast/test/integration/zookeeper/faults.test.ts",
  "packages/holdfast/test/package-cjs.test.ts",
  "packages/holdfast/test/integration/replicas/min-replicas.test.ts",
  "verify/test/sim/kinds.test.ts",
  "packages/holdfast/test/integration/single/silent-server.test.ts",
  "packages/server/test/hostile.test.ts",
  "packages/cli/test/inspect/inspect.test.ts",
  "packages/server/test/edge.test.ts",
  "verify/test/sim/bounds.test.ts",
  "packages/holdfast/test/integration/redlock/kinds-contention.test.ts",
  "packages/holdfast/test/integration/single/many-leases.test.ts",
  "packages/server/test/console-browser.test.ts",
  "packages/holdfast/test/integration/single/loss-before-end.test.ts",
  "verify/test/trace/trace.test.ts",
  "packages/holdfast/test/integration/single/least-privilege.test.ts",
  "packages/holdfast/test/integration/cluster/settings.test.ts",
  "packages/holdfast/test/optimistic/stock-example.test.ts",
  "packages/holdfast/test/integration/cluster/renewal.test.ts",
  "packages/cli/test/etcd.test.ts",
  "packages/holdfast/test/integration/redlock/restart.test.ts",
  "packages/holdfast/test/integration/redlock/extension.test.ts",
  "packages/holdfast/test/package.test.ts",
  "packages/holdfast/test/drivers/connect/topologies.test.ts",
  "packages/holdfast/test/drivers/redis/protocol/scripts/both-ways.property.test.ts",
  "packages/holdfast/test/integration/zookeeper/ensemble.test.ts",
  "packages/server/test/instances.test.ts",
  "packages/cli/test/run/stops.test.ts",
  "packages/holdfast/test/integration/mysql/conformance.test.ts",
  "packages/holdfast/test/kinds/latch.property.test.ts",
  "packages/holdfast/test/fake-redis/fake-redis.test.ts",
];

/** Starts the slow files first, in the order of the list. */
export default class SlowTestsFirst extends BaseSequencer {
  async sort(specifications) {
    const places = new Map(slowTests.map((path, place) => [path, place]));
    const placeOf = ({ moduleId }) =>
      places.get(relative(this.ctx.config.root, moduleId).replaceAll("\\", "/")) ?? slowTests.length;
    const sorted = await super.sort(specifications);
    return sorted.sort((a, b) => placeOf(a) - placeOf(b));
  }
}
