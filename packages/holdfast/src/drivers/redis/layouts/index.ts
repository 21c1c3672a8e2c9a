import { StoreDriver } from "../../store/store-driver.ts";
import type { RedisLayout } from "../options.ts";
import type { LayoutRules } from "./layout.ts";
import { pythonRedisLockRules } from "./python-redis-lock.ts";
import { redissonFencedRules, redissonRules } from "./redisson.ts";
import { shedLockRules } from "./shedlock.ts";
import { springRules } from "./spring.ts";
import { LayoutStore } from "./store.ts";

/** `RLock`, `RFairLock`, `RSpinLock` and `RReadWriteLock` of Redisson. Keys have no prefix by default. */
export const redisson: RedisLayout = layoutOf(redissonRules);

/** `RFencedLock` of Redisson, with its fencing tokens. Keys have no prefix by default. */
export const redissonFenced: RedisLayout = layoutOf(redissonFencedRules);

/** `RedisLockRegistry` of Spring Integration. Needs the registry key and a colon as `prefix`. */
export const spring: RedisLayout = layoutOf(springRules);

/** `Lock` of python-redis-lock. Keys have the prefix `lock:`, as there. */
export const pythonRedisLock: RedisLayout = layoutOf(pythonRedisLockRules);

/** The locks of ShedLock. Keys have the prefix `job-lock:default:`, as there for the default environment. */
export const shedLock: RedisLayout = layoutOf(shedLockRules);

function layoutOf(rules: LayoutRules): RedisLayout {
  return {
    name: rules.name,
    defaultPrefix: rules.defaultPrefix,
    open: (connection, settings) => new StoreDriver(new LayoutStore(connection, rules, settings), settings),
  };
}
