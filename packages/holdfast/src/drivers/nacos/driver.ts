import type { Driver } from "../../driver.ts";
import { StoreDriver } from "../store/store-driver.ts";
import { resolveOptions, type NacosOptions } from "./options.ts";
import { NacosStore } from "./store.ts";

/**
 * Locks in the configurations of Nacos, 2.3.2 or newer, over HTTP. Each lock is one configuration, and each grant, extension and release
 * replaces its content by compare-and-set (`casMd5`), which the database of Nacos decides. The fencing token is a counter in the content.
 *
 * Two holders at once are possible if the database loses committed writes, or another program writes or deletes the configuration. They
 * are also possible if clocks differ in speed by more than 1 %, or wall clocks of servers by more than `maxClockDifferenceMs`.
 *
 * This driver is tested against a simulator of the documented API, and was not run against a real server.
 * @param servers the URLs of the servers, for example `http://10.0.0.1:8848`. After a failure the next one is used
 * @throws {TypeError | RangeError} for an invalid URL or option
 * @example
 * ```ts
 * const locks = createLocks(nacos("http://127.0.0.1:8848", { namespace: "prod" }));
 * ```
 */
export function nacos(servers: string | readonly string[], options: NacosOptions = {}): Driver {
  const resolved = resolveOptions(servers, options);
  return new StoreDriver(new NacosStore(resolved), resolved);
}
