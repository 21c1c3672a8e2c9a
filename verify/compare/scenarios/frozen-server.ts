import { startRedis, until } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, time, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { keepOrAcquire, warmUp } from "../environment.ts";

const ttlMs = 2_000;
const slackMs = 300;
const patienceMs = 8_000;

/** From the grant on the server answers nothing, and its connections stay. */
export const frozenServer: Scenario = {
  withinMs: 20_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const locks = library.onServer(connect(server.port));
    await warmUp(locks);
    const lease = await keepOrAcquire(locks, "frozen-server", ttlMs);
    server.freeze();
    const end = performance.now() + ttlMs;
    await until(() => !lease.isMine(), "the holder is told", ttlMs + patienceMs).catch(() => undefined);
    const lateMs = performance.now() - end;
    if (lease.isMine()) {
      return failed(`still said "yours" ${time(lateMs)} after the end of its TTL`);
    }
    return lateMs <= slackMs ? passed() : failed(`told ${time(lateMs)} after the end of its TTL`);
  },
};
