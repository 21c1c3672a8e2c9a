import { hasZooKeeper } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startEnsemble, startZooKeeper, type ZooKeeperServer } from "@holdfast/test-kit/engines";

/** `describe` for tests that need ZooKeeper. */
export const onZooKeeper: ReturnType<typeof describeWith> = describeWith("ZooKeeper", hasZooKeeper);
