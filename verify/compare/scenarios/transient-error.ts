import { setTimeout as pause } from "node:timers/promises";

import { startRedis, waitUntil } from "@holdfast/test-kit";

import { connect, type Client } from "../clients.ts";
import { failed, notOffered, passed, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";

const ttlMs = 3_000;

/** The server refuses one renewal, and has no other fault. */
export const transientError: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const admin = direct(server);
    const locks = library.onServer(connect(server.port));
    if (locks.hold === null) {
      return notOffered("no renewal");
    }
    await warmUp(locks);
    const lease = await locks.hold("transient-error", ttlMs);
    const end = performance.now() + ttlMs;
    await admin.config("SET", "min-replicas-to-write", 1);
    await waitUntil(async () => (await refusals(admin)) > 0, "a renewal is refused", ttlMs);
    await admin.config("SET", "min-replicas-to-write", 0);
    const leftMs = end - performance.now();
    while (performance.now() < end + ttlMs) {
      if (!lease.isHeld()) {
        const lostMs = end - performance.now();
        return failed(
          lostMs > 0
            ? `ended the lease at the error, ${formatMs(lostMs)} before its end`
            : `lost the lease ${formatMs(-lostMs)} after its end, though ${formatMs(leftMs)} were left after the error`,
        );
      }
      await pause(10);
    }
    return (await admin.exists(locks.nameOnServer("transient-error"))) === 1
      ? passed()
      : failed(`the lock expired on the server, and the loss was not reported`);
  },
};

async function refusals(admin: Client): Promise<number> {
  return Number(/errorstat_NOREPLICAS:count=(\d+)/.exec(await admin.info("errorstats"))?.[1] ?? 0);
}
