import { setTimeout as pause } from "node:timers/promises";

import { connect } from "../clients.ts";
import type { Library } from "../library.ts";
import { judged, notOffered, time, wordsOf, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { startNodes, warmUp } from "../environment.ts";
import { within } from "../within.ts";

const ttlMs = 10_000;
const mostMs = 2_000;
const patienceMs = 10_000;

/** After everybody has met all three nodes, one of them is frozen or killed; then a lock is acquired and released. */
export const minorityAway: Scenario = {
  withinMs: 40_000,
  run: async (library): Promise<Outcome> => {
    if (library.onQuorum === null) {
      return notOffered("no quorum");
    }
    const complaints = await Promise.all([turnWithout(library, "frozen"), turnWithout(library, "down")]);
    return judged(complaints.flat());
  },
};

async function turnWithout(library: Library, how: "frozen" | "down"): Promise<string[]> {
  const nodes = await startNodes(3);
  const locks = library.onQuorum?.(nodes.map(({ port }) => connect(port)));
  const [away] = nodes;
  if (!locks || !away) {
    return [];
  }
  await warmUp(locks);
  away.kill(how === "frozen" ? "SIGSTOP" : "SIGKILL");
  await pause(100);
  const acquired = await within(patienceMs, locks.acquire("minority-away", { ttlMs, waitMs: 5_000 }));
  const took = time(acquired.afterMs);
  if (acquired.state === "pending") {
    return [`one ${how}: no answer to acquire in ${took}`];
  }
  if (acquired.state === "rejected") {
    return [`one ${how}: acquire rejected after ${took}: ${wordsOf(acquired.error)}`];
  }
  const released = await within(patienceMs, acquired.value.release());
  if (released.state === "pending") {
    return [`one ${how}: acquire took ${took}, no answer to release in ${time(released.afterMs)}`];
  }
  if (released.state === "rejected") {
    return [
      `one ${how}: acquire took ${took}, release rejected after ${time(released.afterMs)}: ${wordsOf(released.error)}`,
    ];
  }
  return acquired.afterMs + released.afterMs <= mostMs
    ? []
    : [`one ${how}: acquire took ${took}, release ${time(released.afterMs)}`];
}
