import { SeededRandom } from "./dice.ts";
import type { ScheduleFrame, Step } from "./schedule.ts";

/** A generator of its own, as for sleeps. */
export function reorderRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 7 * 2 ** 28);
}

/** The probability that nodes execute requests in another order, in a schedule without faults. */
const reorderProbability = 0.4;

/**
 * Plans requests that a node executes after later commands of the same connection. No message is lost, so no lock may stay free for
 * long. A request that is executed after the release of its token is granted or queued in vain, until its reply arrives.
 */
export function planReorders(
  { scenario, engine, kind, clients, nodes, nodeTimeoutMs, quietAt }: ScheduleFrame,
  random: SeededRandom,
): Step[] {
  const isPlanned = scenario === "calm" && engine !== "memory" && kind !== "latch";
  if (!isPlanned || !random.happens(reorderProbability)) {
    return [];
  }
  return Array.from({ length: random.integer(5, 40) }, (): Step => ({
    at: random.between(0, quietAt),
    kind: "reorder",
    client: random.integer(0, clients.length - 1),
    node: random.integer(0, nodes.length - 1),
    count: random.integer(1, 3),
    afterMs: random.between(1, engine === "server" ? 60 : nodeTimeoutMs / 2), // a longer delay is a lost message for a quorum
  }));
}
