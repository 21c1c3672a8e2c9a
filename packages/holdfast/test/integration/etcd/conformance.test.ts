import { etcd } from "holdfast/etcd";
import { afterAll, beforeAll, describe, test } from "vitest";

import { patient, wholeConformance } from "../../support/conformance.ts";
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
    wholeConformance({
      test,
      open: async () => ({ driver: etcd(server.url, patient), other: etcd(server.url, patient) }),
    });
  });
});
