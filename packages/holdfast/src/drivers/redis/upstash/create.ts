import type { Driver } from "../../../driver.ts";
import { checkOptionNames, checkObject, invalidValue } from "../../../option-checks.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import { plainRules } from "../layouts/plain.ts";
import { LayoutStore } from "../layouts/store.ts";
import { resolveRedis } from "../options.ts";
import { StoreDriver } from "../../store/store-driver.ts";
import { isUpstashClient, UpstashConnection, type UpstashClient } from "./connection.ts";

export interface UpstashOptions {
  /** The prefix of every key. @defaultValue "lock:" */
  prefix?: string | undefined;
  /** How long one request may take before it counts as unanswered, ms. @defaultValue 5 000 */
  commandTimeoutMs?: number | undefined;
  /** The most waiters for one key. Further waiters fail with `too-many-waiters`. @defaultValue 100 000 */
  maxQueue?: number | undefined;
  /** For tests. */
  clock?: Clock | undefined;
  /** For tests. */
  random?: Random | undefined;
}

const names = ["prefix", "commandTimeoutMs", "maxQueue", "clock", "random"];

/**
 * Mutexes in a Redis that is reached by Upstash's REST interface. The locks exclude those of `redis()` with the same prefix.
 *
 * Waiters have places in a queue on the server, in the order of arrival, and poll. The first one polls after 50 ms, and then less often, down to
 * every 500 ms.
 * A waiter that has not polled for 2.5 s loses its place. A break is reported at the next renewal.
 * @param client a `Redis` of @upstash/redis
 * @throws {TypeError | RangeError} for another client, or an invalid option
 * @example
 * ```ts
 * const locks = createLocks(upstash(Redis.fromEnv())); // Redis of @upstash/redis
 * ```
 */
export function upstash(client: UpstashClient, options: UpstashOptions = {}): Driver {
  checkObject("options", options);
  checkOptionNames(options, names);
  if (typeof client !== "object" || client === null || !isUpstashClient(client)) {
    throw invalidValue("client", "a Redis of @upstash/redis", typeof client); // only the type, because a client has a token
  }
  const settings = resolveRedis({ commandTimeoutMs: 5_000, ...options });
  return new StoreDriver(new LayoutStore(new UpstashConnection(client), plainRules, settings), settings);
}
