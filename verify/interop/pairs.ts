import type { RedisOptions } from "holdfast/redis";

import type { ToolchainName } from "./run/toolchains.ts";
import type { HoldfastSettings } from "./workers/node/holdfast-settings.ts";

/** A library, and the settings with which this library shares its locks. */
export interface Pair {
  readonly name: string;
  readonly library: string;
  readonly toolchain: ToolchainName;
  readonly holdfast: HoldfastSettings;
  /** Whether holders of the other library may share the lock with each other. */
  readonly areTheirsShared?: boolean;
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
const shared = (layout: string, prefix?: string): HoldfastSettings => ({
  layout,
  options: prefix === undefined ? {} : { prefix },
});
const sleeps = "its waiters sleep for their whole wait, because an expiry announces nothing";
const blindDelete = "without safeUpdate it deletes the key of any holder";
/** Both sides use the lock exclusively: each has the write lock. */
const written: HoldfastSettings = { ...shared("redisson"), mode: "write" };
const redisson = "Redisson 4.7.0";

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
  { name: "redisson", library: `${redisson}, RLock`, toolchain: "java", holdfast: shared("redisson") },
  {
    name: "redisson-fenced",
    library: `${redisson}, RFencedLock`,
    toolchain: "java",
    holdfast: shared("redisson-fenced"),
  },
  {
    name: "redisson-fair",
    library: `${redisson}, RFairLock`,
    toolchain: "java",
    holdfast: shared("redisson"),
    limits: { "their-killed-waiter": "a dead waiter keeps its place in the queue for up to 5 minutes" },
  },
  {
    name: "redisson-spin",
    library: `${redisson}, RSpinLock`,
    toolchain: "java",
    holdfast: shared("redisson"),
  },
  { name: "redisson-write", library: `${redisson}, RReadWriteLock`, toolchain: "java", holdfast: written },
  {
    name: "redisson-read",
    library: `${redisson}, readers beside our writers`,
    toolchain: "java",
    holdfast: written,
    areTheirsShared: true,
  },
  {
    name: "spring",
    library: "Spring Integration 7.1.2, RedisLockRegistry with pub/sub",
    toolchain: "java",
    holdfast: shared("spring", "interop:"),
    limits: { "our-killed-holder": sleeps, "our-frozen-holder": sleeps },
  },
  {
    name: "spring-spin",
    library: "Spring Integration 7.1.2, RedisLockRegistry with polls",
    toolchain: "java",
    holdfast: shared("spring", "interop:"),
  },
  {
    name: "shedlock",
    library: "ShedLock 7.10.1",
    toolchain: "java",
    holdfast: shared("shedlock"),
    limits: { "their-frozen-holder": blindDelete },
  },
  {
    name: "shedlock-safe",
    library: "ShedLock 7.10.1, safeUpdate",
    toolchain: "java",
    holdfast: shared("shedlock"),
  },
  {
    name: "python-redis-lock",
    library: "python-redis-lock 4.0.1",
    toolchain: "python",
    holdfast: shared("python-redis-lock"),
  },
];
