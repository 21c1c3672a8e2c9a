export { LostLockError, TimeoutError } from "./errors.ts";
export type { Lock } from "./lock.ts";
export { Mutex } from "./mutex.ts";
export { defaultTimeoutOptions } from "./options.ts";
export type { LockLostCallback, LockOptions, TimeoutOptions } from "./options.ts";
export { RedlockMutex } from "./redlock-mutex.ts";
export { RedlockMultiSemaphore, RedlockSemaphore } from "./redlock-semaphore.ts";
export { MultiSemaphore, Semaphore } from "./semaphore.ts";
export type { RedisClient } from "./clients.ts";
