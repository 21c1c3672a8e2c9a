import type { Driver } from "../../../driver.ts";
import { invalidValue } from "../../../option-checks.ts";
import type { Connection } from "../clients/connection.ts";
import { connectionOfNode, type RedisClient } from "../clients/detect.ts";
import { resolveRedlock, type RedlockOptions } from "../options.ts";
import { RedlockDriver } from "./driver.ts";

const maxNodes = 15;

/**
 * Locks on a majority of independent Redis servers: Redlock, with a queue on every node. Survives any minority of nodes; grants in
 * order of arrival, hands over by message, and gives fencing tokens. Give one client for each node, to masters that share nothing;
 * three or five are usual. The clients stay the caller's.
 */
export function redlock(clients: readonly RedisClient[], options?: RedlockOptions): Driver {
  if (!Array.isArray(clients) || clients.length === 0 || clients.length > maxNodes) {
    throw invalidValue("clients", `an array of 1 to ${maxNodes} clients, one for each node`, clients);
  }
  if (new Set(clients).size < clients.length) {
    throw new TypeError("Expected `clients` to be different clients: the same one twice would vote twice");
  }
  const settings = resolveRedlock(options);
  if (settings.isGuardOff) {
    process.emitWarning("restartGuard is off: a restarted node can give two holders. It is for tests", {
      code: "HOLDFAST_RESTART_GUARD_OFF",
    });
  }
  const connections = clients.map(connectionOfNode);
  assertSamePrefix(connections);
  return new RedlockDriver(settings, connections);
}

/** With different prefixes, the nodes would lock different keys. */
function assertSamePrefix([first, ...others]: readonly Connection[]): void {
  if (others.some(({ keyPrefix }) => keyPrefix !== first?.keyPrefix)) {
    throw new TypeError("Expected `clients` to have the same keyPrefix: each node has to lock the same key");
  }
}
