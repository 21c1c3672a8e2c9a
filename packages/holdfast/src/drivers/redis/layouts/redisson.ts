import type { LayoutParts, LayoutRules } from "./layout.ts";
import { redissonFencedScript, redissonScript } from "./scripts.generated.ts";

const semaphore =
  "Redisson's RSemaphore records no holders, so a crashed holder would never return its permits";
const latch = "Redisson's RCountDownLatch records no attempts, so a repeated request would count twice";

/** The locks `RLock`, `RFairLock`, `RSpinLock` and `RReadWriteLock` of Redisson. */
export const redissonRules: LayoutRules = {
  name: "redisson",
  library: "redisson",
  script: redissonScript,
  kinds: ["mutex", "read-write"],
  unsupported: { semaphore, latch },
  defaultPrefix: "",
  type: "hash",
  maxSharedTtlMs: 30_000,
  partsOf,
};

/** The lock `RFencedLock` of Redisson. */
export const redissonFencedRules: LayoutRules = {
  ...redissonRules,
  name: "redisson-fenced",
  script: redissonFencedScript,
  kinds: ["mutex"],
  unsupported: { semaphore, latch, "read-write": "Redisson has fencing tokens for a mutex only" },
  partsOf: (lock) => ({ ...partsOf(lock), counter: prefixed("redisson_lock_token", lock) }),
};

function partsOf(lock: string): LayoutParts {
  const [mutexChannel, sharedChannel] = [
    prefixed("redisson_lock__channel", lock),
    prefixed("redisson_rwlock", lock),
  ];
  return {
    keys: [prefixed("redisson_lock_queue", lock), prefixed("redisson_lock_timeout", lock)],
    channels: [mutexChannel, sharedChannel],
    detail: `${tagged(lock)}:`,
    wakeChannel: (isReadWrite) => (isReadWrite ? sharedChannel : mutexChannel),
  };
}

/** Redisson takes a name with an opening brace for one with a hash tag. */
function tagged(lock: string): string {
  return lock.includes("{") ? lock : `{${lock}}`;
}

function prefixed(prefix: string, lock: string): string {
  return `${prefix}:${tagged(lock)}`;
}
