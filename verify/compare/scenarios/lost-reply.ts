import { startProxy, startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, passed, formatMs, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const key = "lost-reply";
const ttlMs = 5_000;
const waitMs = 2 * ttlMs;

/** A proxy drops the first reply about this lock and ends the connection. The client reconnects and repeats its request. */
export const lostReply: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    const locks = library.onServer(connect(proxy.port));
    await warmUp(locks);
    const lost = proxy.loseNextReply(new RegExp(key));
    const acquired = await withTimeout(waitMs + 5_000, locks.acquire(key, { ttlMs, waitMs }));
    await lost;
    const took = formatMs(acquired.afterMs);
    switch (acquired.state) {
      case "fulfilled":
        return acquired.afterMs <= 1_000
          ? passed(`after ${took}`)
          : failed(`waited ${took} for a free lock, until its own grant had expired`);
      case "rejected":
        return failed(`failed to acquire a free lock after ${took}: ${verdictText(acquired.error)}`);
      case "pending":
        return failed(`no reply in ${took}`);
    }
  },
};
