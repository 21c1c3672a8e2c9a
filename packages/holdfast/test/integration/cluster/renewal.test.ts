import { setTimeout as pause } from "node:timers/promises";

import type { Lease } from "holdfast";
import { expect, test } from "vitest";
import { timeFactor, type RedisServer } from "@holdfast/test-kit";

import { ClusterFixture, keysOnDifferentPrimaries } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";

/**
 * `HOLDFAST_TEST_LEASES` sets the number of leases, which then have the default TTL. Without it, there are few
 * leases with a short TTL.
 */
const wanted = Number(process.env["HOLDFAST_TEST_LEASES"] ?? 0);
const [leasesEach, ttlMs] =
  wanted > 0 ? [Math.ceil(wanted / 3), 30_000] : [334, Math.ceil(6_000 * timeFactor)];

onRedis(`${3 * leasesEach} leases over all nodes of a cluster`, () => {
  test.each([
    ["frozen", (server: RedisServer) => server.freeze()],
    ["killed", (server: RedisServer) => server.kill("SIGKILL")],
  ])(
    "one node is %s: every lease on the others is renewed in time",
    async (_how, disturb) => {
      await using fixture = await ClusterFixture.open({
        primaries: 3,
        replicas: 0,
        args: ["--cluster-require-full-coverage", "no"],
      });
      const locks = fixture.locks();
      const leases = await Promise.all(
        keysOnDifferentPrimaries(3, "renewed", leasesEach).map((keys) =>
          Promise.all(keys.map((key) => locks.acquire(key, { ttlMs, waitMs: 60_000 }))),
        ),
      );
      const [dead, ...kept] = leases as [Lease[], Lease[], Lease[]];
      const dying = fixture.cluster.servers[0] as RedisServer;
      disturb(dying);
      fixture.onCleanup(() => {
        dying.thaw();
      });
      const leftMs = (): number => Math.min(...kept.flat().map((lease) => lease.remainingMs()));
      let leastMs = ttlMs;
      const begun = performance.now();
      while (performance.now() < begun + ttlMs + 1_000) {
        await pause(100);
        expect(kept.flat().filter(({ signal }) => signal.aborted).length).toBe(0);
        leastMs = Math.min(leastMs, leftMs());
      }
      expect(leastMs).toBeGreaterThan(0);
      expect(dead.every(({ signal }) => signal.aborted)).toBe(true);
      const reported = (await locks.admin.nodes()).map(
        ({ reachable, cluster }) => `${reachable} ${cluster?.state}`,
      );
      expect(reported.sort()).toEqual(["false null", "true ok", "true ok"]);
      console.info(
        `${kept.flat().length} of ${3 * leasesEach} leases were renewed, each valid for ${Math.round(leastMs)} ms of ${ttlMs} at any time`,
      );
      const released = await Promise.all(kept.flat().map((lease) => lease.release()));
      expect(released.every((isOurs) => isOurs)).toBe(true);
    },
    60_000 + 4 * ttlMs,
  );
});
