import type { Driver } from "../../../driver.ts";
import { invalidValue } from "../../../option-checks.ts";
import type { Connection } from "../clients/connection.ts";
import { connectionOfNode, type RedisClient } from "../clients/detect.ts";
import { resolveRedlock, type RedlockOptions } from "../options.ts";
import { RedlockDriver } from "./driver.ts";

const maxNodes = 15;

/**
 * Locks on a majority of independent Redis servers: Redlock, with a queue on every node. The locks survive the failure of any minority
 * of the nodes. Grants follow the order of arrival, arrive by notification, and have fencing tokens.
 * @param clients one for each node, usually three or five, connected to masters that share nothing. The caller closes the clients.
 * @example
 * ```ts
 * const nodes = ["redis://a:6379", "redis://b:6379", "redis://c:6379"].map((url) => new Redis(url));
 * const locks = createLocks(redlock(nodes)); // held while a majority of independent servers agrees
 * ```
 */
export function redlock(clients: readonly RedisClient[], options?: RedlockOptions): Driver {
  if (!Array.isArray(clients) || clients.length === 0 || clients.length > maxNodes) {
    throw invalidValue("clients", `an array of 1 to ${maxNodes} clients, one for each node`, clients);
  }
  if (new Set(clients).size < clients.length) {
    throw new TypeError(
      "Expected `clients` to be different clients, because a client that occurs twice would vote twice",
    );
  }
  const settings = resolveRedlock(options);
  if (settings.restartGuard === "off") {
    process.emitWarning(
      "restartGuard is off. After a restart of a node, two holders are possible. Use this option only in tests",
      {
        code: "HOLDFAST_RESTART_GUARD_OFF",
      },
    );
  }
  const connections = clients.map(connectionOfNode);
  assertSamePrefix(connections);
  return new RedlockDriver(settings, connections);
}

/** With different prefixes, the nodes would lock different keys. */
function assertSamePrefix([first, ...others]: readonly Connection[]): void {
  if (others.some(({ keyPrefix }) => keyPrefix !== first?.keyPrefix)) {
    throw new TypeError(
      "Expected `clients` to have the same keyPrefix, because each node must lock the same key",
    );
  }
}
