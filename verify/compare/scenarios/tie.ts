import { connect } from "../clients.ts";
import { failed, outcomeOf, notOffered, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, startNodes, warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const ttlMs = 20_000;
const waitMs = 1_500;
const graceMs = 3_000;

/** First, two of four nodes hold the lock for another client. Then two of four nodes lose a lock before its release. */
export const tie: Scenario = {
  withinMs: 25_000,
  run: async (library): Promise<Outcome> => {
    if (library.onQuorum === null) {
      return notOffered("no quorum");
    }
    const nodes = await startNodes(4);
    const volatileNodes = nodes.slice(2).map(direct);
    const locks = library.onQuorum(nodes.map(({ port }) => connect(port)));
    await warmUp(locks);
    const complaints: string[] = [];

    const presetVotes = locks.nameOnServer("taken");
    await Promise.all(volatileNodes.map((node) => node.set(presetVotes, "another's", "PX", 60_000)));
    const acquired = await withTimeout(waitMs + graceMs, locks.acquire("taken", { ttlMs, waitMs }));
    if (acquired.state === "fulfilled") {
      return failed("acquired a lock that half of the nodes had granted to another client");
    }
    if (acquired.state === "pending") {
      complaints.push(
        `acquire, with a wait of ${formatMs(waitMs)}, did not end in ${formatMs(acquired.afterMs)}`,
      );
    }

    const lease = await locks.acquire("forgotten", { ttlMs, waitMs });
    await Promise.all(volatileNodes.map((node) => node.del(locks.nameOnServer("forgotten"))));
    const released = await withTimeout(graceMs, lease.release());
    if (released.state === "pending") {
      complaints.push(`release did not end in ${formatMs(released.afterMs)}`);
    }
    return outcomeOf(complaints);
  },
};
