import { setTimeout as pause } from "node:timers/promises";

import { connect } from "../clients.ts";
import type { Library } from "../library.ts";
import { outcomeOf, notOffered, formatMs, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { startNodes, warmUp } from "../environment.ts";
import { withTimeout } from "../within.ts";

const ttlMs = 10_000;
const maxMs = 2_000;
const timeoutMs = 10_000;

/** After the first contact with all three nodes, one node is frozen or killed. Then a lock is acquired and released. */
export const minorityAway: Scenario = {
  withinMs: 40_000,
  run: async (library): Promise<Outcome> => {
    if (library.onQuorum === null) {
      return notOffered("no quorum");
    }
    const complaints = await Promise.all([
      acquireWithoutNode(library, "frozen"),
      acquireWithoutNode(library, "down"),
    ]);
    return outcomeOf(complaints.flat());
  },
};

async function acquireWithoutNode(library: Library, how: "frozen" | "down"): Promise<string[]> {
  const nodes = await startNodes(3);
  const locks = library.onQuorum?.(nodes.map(({ port }) => connect(port)));
  const [stopped] = nodes;
  if (!locks || !stopped) {
    return [];
  }
  await warmUp(locks);
  stopped.kill(how === "frozen" ? "SIGSTOP" : "SIGKILL");
  await pause(100);
  const acquired = await withTimeout(timeoutMs, locks.acquire("minority-away", { ttlMs, waitMs: 5_000 }));
  const durationMs = formatMs(acquired.afterMs);
  if (acquired.state === "pending") {
    return [`one ${how}: no reply to acquire in ${durationMs}`];
  }
  if (acquired.state === "rejected") {
    return [`one ${how}: acquire rejected after ${durationMs}: ${verdictText(acquired.error)}`];
  }
  const released = await withTimeout(timeoutMs, acquired.value.release());
  if (released.state === "pending") {
    return [`one ${how}: acquire took ${durationMs}, no reply to release in ${formatMs(released.afterMs)}`];
  }
  if (released.state === "rejected") {
    return [
      `one ${how}: acquire took ${durationMs}, release rejected after ${formatMs(released.afterMs)}: ${verdictText(released.error)}`,
    ];
  }
  return acquired.afterMs + released.afterMs <= maxMs
    ? []
    : [`one ${how}: acquire took ${durationMs}, release ${formatMs(released.afterMs)}`];
}
