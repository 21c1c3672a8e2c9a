import type { Driver } from "../../driver.ts";
import { StoreDriver } from "../store/store-driver.ts";
import { resolveOptions, type ZooKeeperOptions } from "./options.ts";
import { ZooKeeperStore } from "./store.ts";

/**
 * Locks in a ZooKeeper ensemble, version 3.5 or newer. Every grant, extension and release is a write that a majority of the servers has
 * stored. Two holders at once need clocks that differ in speed by more than 1 %, or wall clocks of servers that differ by more
 * than `maxClockDifferenceMs`. The fencing token is the number of the transaction that created the grant (czxid).
 *
 * A lease survives the loss of a connection and of a session, because its node is persistent and has a TTL of its own.
 * @param servers one or more servers of the ensemble, for example `10.0.0.1:2181`. After a failure the next one is used
 * @throws {TypeError | RangeError} for an invalid server or option
 * @example
 * ```ts
 * const locks = createLocks(zookeeper("a:2181,b:2181,c:2181"));
 * ```
 */
export function zookeeper(servers: string | readonly string[], options: ZooKeeperOptions = {}): Driver {
  const resolved = resolveOptions(servers, options);
  return new StoreDriver(new ZooKeeperStore(resolved), resolved);
}
