import { setTimeout as pause } from "node:timers/promises";

import type { Lease, Locks } from "holdfast";
import { expect, test } from "vitest";
import type { RedisServer } from "@holdfast/test-kit";
import { timeFactor } from "@holdfast/test-kit";

import {
  onCleanup,
  connect,
  newKey,
  onSharedRedis,
  open,
  ownServer,
  warmUp,
} from "../../support/fault-fixture.ts";

const leasesEach = 5_000;
const ttlMs = Math.ceil(5_000 * timeFactor);

onSharedRedis("ten thousand leases of one process on two servers", () => {
  test.each([
    ["frozen", freeze],
    ["killed", kill],
  ])(
    "one dead server of two: every lease on the other is renewed in time (it is %s)",
    async (_how, disturb) => {
      const [living, dying] = [await ownServer(), await ownServer()];
      const [here, there] = [open(connect(living.port)), open(connect(dying.port))];
      await Promise.all([warmUp(here), warmUp(there)]);
      const [kept, dead] = await Promise.all([acquireMany(here), acquireMany(there)]);
      disturb(dying);
      const longest = Math.max(...dead.map(({ validUntil }) => validUntil));
      const begun = performance.now();
      while (performance.now() < begun + ttlMs + 1_000) {
        await pause(100);
        expect(kept.filter(({ signal }) => signal.aborted).length).toBe(0);
      }
      expect(Math.min(...kept.map((lease) => lease.remainingMs()))).toBeGreaterThan(0);
      expect((await living.client().keys("lock:*")).length).toBe(leasesEach);
      expect(dead.every(({ signal }) => signal.aborted)).toBe(true);
      expect(longest).toBeLessThan(begun + ttlMs);
      const released = await Promise.all(kept.map((lease) => lease.release()));
      expect(released.every((isOurs) => isOurs)).toBe(true);
    },
  );
});

function acquireMany(locks: Locks): Promise<Lease[]> {
  return Promise.all(Array.from({ length: leasesEach }, () => locks.acquire(newKey(), { ttlMs })));
}

function freeze(server: RedisServer): void {
  server.freeze();
  onCleanup(() => {
    server.thaw();
  });
}

function kill(server: RedisServer): void {
  server.kill("SIGKILL");
}
