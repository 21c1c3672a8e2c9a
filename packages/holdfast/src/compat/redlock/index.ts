export { ExecutionError, LockError, ResourceLockedError } from "./errors.ts";
export type { ExecutionResult, ExecutionStats } from "./errors.ts";
export { Lock, type LockHost } from "./lock.ts";
export { Redlock, Redlock as default, type RedlockAbortSignal } from "./redlock.ts";
export type { Settings } from "./settings.ts";
