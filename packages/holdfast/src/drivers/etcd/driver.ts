import type { Driver } from "../../driver.ts";
import { StoreDriver } from "../store/store-driver.ts";
import { resolveOptions, type EtcdOptions } from "./options.ts";
import { EtcdStore } from "./store.ts";

/**
 * Locks in etcd 3.4 or newer, through its JSON gateway. A grant is a key with an etcd lease of its own, and its fencing token is the
 * create revision of the key. The TTL is rounded up to whole seconds and to the server's minimum, usually 2 seconds.
 * @param endpoints the client URLs of the members, for example `http://10.0.0.1:2379`. After a failure the next one is used
 * @throws {TypeError | RangeError} for an invalid URL or option
 * @example
 * ```ts
 * const locks = createLocks(etcd("http://127.0.0.1:2379"));
 * ```
 */
export function etcd(endpoints: string | readonly string[], options: EtcdOptions = {}): Driver {
  const resolved = resolveOptions(endpoints, options);
  return new StoreDriver(new EtcdStore(resolved), resolved);
}
