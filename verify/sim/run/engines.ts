import type { Clock, Driver, Random } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock, type Connection } from "holdfast/redis";

import type { NodeSetup, Schedule } from "../plan/schedule.ts";

export const commandTimeoutMs = 400;

/** The difference of clocks with different speeds grows during the schedule. */
function maxClockDifferenceMs(nodes: readonly NodeSetup[]): number {
  return nodes.every(({ rate }) => rate === 1) ? 200 : 1_000;
}

/** The driver of the library for the engine of a schedule. */
export function driverOf(
  { engine, nodes, maxTtlMs, claimMs, nodeTimeoutMs, restartGuard }: Schedule,
  connections: readonly Connection[],
  own: { readonly clock: Clock; readonly random: Random },
): Driver {
  switch (engine) {
    case "quorum":
      return redlock(connections, {
        ...own,
        maxTtlMs,
        claimMs,
        nodeTimeoutMs,
        commandTimeoutMs,
        restartGuard,
        maxClockDifferenceMs: maxClockDifferenceMs(nodes),
      });
    case "server":
      return redis(connections[0] as Connection, { ...own, claimMs, commandTimeoutMs });
    case "memory":
      return memory(own);
  }
}
