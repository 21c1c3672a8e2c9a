import type { Clock, Driver, Random } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock, type Connection } from "holdfast/redis";

import type { NodeSetup, Schedule } from "../plan/schedule.ts";

export const commandTimeoutMs = 400;

/** Nodes whose clocks run at other speeds are further apart, the longer a schedule lasts. */
function maxClockDifferenceMs(nodes: readonly NodeSetup[]): number {
  return nodes.every(({ rate }) => rate === 1) ? 200 : 1_000;
}

/** The library's own driver for the engine of a schedule. */
export function driverOf(
  { engine, nodes, maxTtlMs, claimMs, nodeTimeoutMs }: Schedule,
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
        maxClockDifferenceMs: maxClockDifferenceMs(nodes),
      });
    case "server":
      return redis(connections[0] as Connection, { ...own, claimMs, commandTimeoutMs });
    case "memory":
      return memory(own);
  }
}
