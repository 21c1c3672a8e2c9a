import type { Clock, Driver, Random } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock, type Connection } from "holdfast/redis";

import type { Schedule } from "./schedule.ts";

export const commandTimeoutMs = 400;

/** The library's own driver for the engine of a schedule. */
export function driverOf(
  { engine, maxTtlMs, claimMs, nodeTimeoutMs }: Schedule,
  connections: readonly Connection[],
  own: { readonly clock: Clock; readonly random: Random },
): Driver {
  switch (engine) {
    case "quorum":
      return redlock(connections, { ...own, maxTtlMs, claimMs, nodeTimeoutMs, commandTimeoutMs });
    case "server":
      return redis(connections[0] as Connection, { ...own, claimMs, commandTimeoutMs });
    case "memory":
      return memory(own);
  }
}
