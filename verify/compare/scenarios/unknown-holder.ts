import { startProxy, startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, notOffered, passed, formatMs, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const key = "unknown-holder";
const timeoutMs = 10_000;

/** One process holds the lock; the way of another to the server is cut, and it asks whether anybody does. */
export const unknownHolder: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    // Else a client asks for some ten seconds before it gives up, which is its own patience and no library's.
    const locks = library.onServer(connect(proxy.port, { maxRetriesPerRequest: 2 }));
    if (locks.isHeld === null) {
      return notOffered("nobody can be asked who holds");
    }
    await warmUp(locks);
    const holder = library.onServer(connect(server.port));
    await holder.acquire(key, { ttlMs: 60_000, waitMs: 1_000 });
    if (!(await locks.isHeld(key))) {
      return failed("said that a held lock is free");
    }
    await proxy.stop();
    const answer = await withTimeout(timeoutMs, locks.isHeld(key));
    switch (answer.state) {
      case "fulfilled":
        return answer.value ? passed() : failed("said that the held lock is free");
      case "rejected":
        return passed(verdictText(answer.error));
      case "pending":
        return failed(`did not answer in ${formatMs(answer.afterMs)}`);
    }
  },
};
