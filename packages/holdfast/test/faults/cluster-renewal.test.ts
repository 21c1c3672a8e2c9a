import { setTimeout as pause } from "node:timers/promises";

import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import type { RedisServer } from "@holdfast/lab";

import { ClusterStage, keysOver } from "../support/cluster-stage.ts";
import { onRedis } from "../support/servers.ts";

const leasesEach = 667;
const ttlMs = 6_000;

onRedis("two thousand leases over all nodes of a cluster", () => {
  test.each([
    ["frozen", (server: RedisServer) => server.freeze()],
    ["killed", (server: RedisServer) => server.kill("SIGKILL")],
  ])(
    "one node is %s: every lease on the others is renewed in time",
    async (_how, disturb) => {
      await using stage = await ClusterStage.open({
        primaries: 3,
        replicas: 0,
        args: ["--cluster-require-full-coverage", "no"],
      });
      const locks = stage.locks();
      const leases = await Promise.all(
        keysOver(3, "renewed", leasesEach).map((keys) =>
          Promise.all(keys.map((key) => locks.acquire(key, { ttlMs, waitMs: 20_000 }))),
        ),
      );
      const [dead, ...kept] = leases as [Lease[], Lease[], Lease[]];
      const dying = stage.cluster.servers[0] as RedisServer;
      disturb(dying);
      stage.atEnd(() => {
        dying.thaw();
      });
      const begun = performance.now();
      while (performance.now() < begun + ttlMs + 1_000) {
        await pause(100);
        expect(kept.flat().filter(({ signal }) => signal.aborted).length).toBe(0);
      }
      expect(Math.min(...kept.flat().map((lease) => lease.remainingMs()))).toBeGreaterThan(0);
      expect(dead.every(({ signal }) => signal.aborted)).toBe(true);
      const released = await Promise.all(kept.flat().map((lease) => lease.release()));
      expect(released.every((isOurs) => isOurs)).toBe(true);
    },
    60_000,
  );
});
