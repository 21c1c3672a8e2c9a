import { etcd } from "holdfast/etcd";
import { driverConformance } from "holdfast/testing";
import { afterAll, beforeAll, describe, test } from "vitest";

import { patient } from "../../support/conformance.ts";
import { onEtcd, startEtcd, type EtcdServer } from "../../support/etcd-server.ts";

onEtcd("etcd", () => {
  let server: EtcdServer;

  beforeAll(async () => {
    server = await startEtcd();
  });

  afterAll(async () => {
    await server.stop();
  });

  describe.concurrent("etcd passes the conformance suite:", () => {
    driverConformance({
      test,
      open: async () => ({ driver: etcd(server.url, patient), other: etcd(server.url, patient) }),
    });
  });
});
