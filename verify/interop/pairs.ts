import type { RedisOptions } from "holdfast/redis";

import type { ToolchainName } from "./run/toolchains.ts";
import type { HoldfastSettings } from "./workers/node/holdfast-settings.ts";

/** A library, and the settings with which this library shares its locks. */
export interface Pair {
  readonly name: string;
  readonly library: string;
  readonly toolchain: ToolchainName;
  readonly holdfast: HoldfastSettings;
  /** The known limits of the library itself, by check. Two of its own processes have them too. */
  readonly limits?: Readonly<Partial<Record<CheckName, string>>>;
}

export const checkNames = [
  "their-killed-holder",
  "our-killed-holder",
  "their-frozen-holder",
  "our-frozen-holder",
  "our-killed-waiter",
  "their-killed-waiter",
] as const;

export type CheckName = (typeof checkNames)[number];

const options = (given: RedisOptions): HoldfastSettings => ({ options: given });

export const pairs: readonly Pair[] = [
  { name: "redlock", library: "redlock 5.0.0-beta.2", toolchain: "npm", holdfast: options({ prefix: "" }) },
  {
    name: "@sesamecare-oss/redlock",
    library: "@sesamecare-oss/redlock 1.4.0",
    toolchain: "npm",
    holdfast: options({ prefix: "" }),
  },
  {
    name: "redis-semaphore",
    library: "redis-semaphore 5.8.0, Mutex",
    toolchain: "npm",
    holdfast: options({ prefix: "mutex:" }),
  },
  {
    name: "redlock-universal",
    library: "redlock-universal 0.8.5",
    toolchain: "npm",
    holdfast: options({ prefix: "" }),
  },
  {
    name: "@verrou/core",
    library: "@verrou/core 0.5.2",
    toolchain: "npm",
    holdfast: options({ prefix: "" }),
  },
  {
    name: "redis-py",
    library: "redis-py 8.1.0, Lock",
    toolchain: "python",
    holdfast: options({ prefix: "" }),
  },
  {
    name: "pottery",
    library: "pottery 3.0.1, Redlock",
    toolchain: "python",
    holdfast: options({ prefix: "redlock:" }),
  },
  { name: "redsync", library: "redsync 4.18.1", toolchain: "go", holdfast: options({ prefix: "" }) },
  { name: "redislock", library: "bsm/redislock 0.9.4", toolchain: "go", holdfast: options({ prefix: "" }) },
  {
    name: "rueidislock",
    library: "rueidislock 1.0.79",
    toolchain: "go",
    // Each majority of the three keys has one of these two.
    holdfast: { options: { prefix: "rueidislock:" }, keys: ["0:{}", "1:{}"] },
  },
  { name: "rslock", library: "rslock 0.10.0", toolchain: "rust", holdfast: options({ prefix: "" }) },
  {
    name: "laravel",
    library: "Laravel 8.83, Cache::lock",
    toolchain: "php",
    holdfast: options({ prefix: "" }),
  },
  {
    name: "symfony",
    library: "Symfony Lock 5.4, RedisStore",
    toolchain: "php",
    holdfast: { options: { prefix: "" }, retriesMismatch: true },
  },
];
