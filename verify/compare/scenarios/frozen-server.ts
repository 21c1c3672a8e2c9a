import { startRedis, waitUntil } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { holdOrAcquire, warmUp } from "../environment.ts";

const ttlMs = 2_000;
const slackMs = 300;
const timeoutMs = 8_000;

/** After the grant the server does not reply, but its connections stay open. */
export const frozenServer: Scenario = {
  withinMs: 20_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const locks = library.onServer(connect(server.port));
    await warmUp(locks);
    const lease = await holdOrAcquire(locks, "frozen-server", ttlMs);
    server.freeze();
    const end = performance.now() + ttlMs;
    await waitUntil(() => !lease.isHeld(), "the loss is reported", ttlMs + timeoutMs).catch(() => undefined);
    const lateMs = performance.now() - end;
    if (lease.isHeld()) {
      return failed(`still reported the lock as held ${formatMs(lateMs)} after the end of its TTL`);
    }
    return lateMs <= slackMs
      ? passed()
      : failed(`reported the loss ${formatMs(lateMs)} after the end of its TTL`);
  },
};
