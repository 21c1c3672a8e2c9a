import { startProxy, startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import { failed, notOffered, passed, formatMs, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const key = "unknown-holder";
const timeoutMs = 10_000;

/** One process holds the lock. The connection of another process to the server is cut, and this process queries the holder. */
export const unknownHolder: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    // Otherwise the client retries for about ten seconds before it fails. That would test the client, and not the library.
    const locks = library.onServer(connect(proxy.port, { maxRetriesPerRequest: 2 }));
    if (locks.isHeld === null) {
      return notOffered("the holder cannot be queried");
    }
    await warmUp(locks);
    const holder = library.onServer(connect(server.port));
    await holder.acquire(key, { ttlMs: 60_000, waitMs: 1_000 });
    if (!(await locks.isHeld(key))) {
      return failed("reported a held lock as free");
    }
    await proxy.stop();
    const answer = await withTimeout(timeoutMs, locks.isHeld(key));
    switch (answer.state) {
      case "fulfilled":
        return answer.value ? passed() : failed("reported the held lock as free");
      case "rejected":
        return passed(verdictText(answer.error));
      case "pending":
        return failed(`did not settle in ${formatMs(answer.afterMs)}`);
    }
  },
};
