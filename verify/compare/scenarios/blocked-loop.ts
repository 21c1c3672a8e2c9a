import { block, startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { holdOrAcquire, warmUp } from "../environment.ts";

const ttlMs = 2_000;
const blockMs = 2_600;

/** No code of the process runs for longer than the TTL, so no renewal was sent, and another process may hold the lock. */
export const blockedLoop: Scenario = {
  withinMs: 15_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const locks = library.onServer(connect(server.port));
    await warmUp(locks);
    const lease = await holdOrAcquire(locks, "blocked-loop", ttlMs);
    block(blockMs);
    return lease.isHeld()
      ? failed(`reported the lock as held ${formatMs(blockMs - ttlMs)} after the end of the lease`)
      : passed();
  },
};
