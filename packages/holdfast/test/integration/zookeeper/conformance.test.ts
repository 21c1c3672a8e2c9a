import { zookeeper } from "holdfast/zookeeper";
import { afterAll, beforeAll, describe, test } from "vitest";

import { patient, wholeConformance } from "../../support/conformance.ts";
import { onZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../support/zookeeper-server.ts";

onZooKeeper("ZooKeeper", () => {
  let server: ZooKeeperServer;

  beforeAll(async () => {
    server = await startZooKeeper();
  });

  afterAll(async () => {
    await server.stop();
  });

  describe.concurrent("ZooKeeper passes the conformance suite:", () => {
    wholeConformance({
      test,
      open: async () => ({
        driver: zookeeper(server.address, patient),
        other: zookeeper(server.address, patient),
      }),
    });
  });
});
