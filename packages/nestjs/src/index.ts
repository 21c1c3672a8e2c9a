export { InjectLease } from "./inject-lease.ts";
export { getLocksToken, InjectLocks } from "./locks-token.ts";
export { LocksHealthIndicator, type LocksHealth } from "./locks-health-indicator.ts";
export { LocksModule } from "./locks-module.ts";
export type {
  AsyncModuleOptions,
  FromClient,
  FromLocks,
  FromToken,
  FromUrl,
  ModuleOptions,
} from "./module-options.ts";
export { LocksTestingModule } from "./locks-testing-module.ts";
export { Once, type OnceMethodOptions } from "./once.ts";
export { WithLock, type WithLockOptions } from "./with-lock.ts";
export type { LockKey } from "./lock-key.ts";
export type { AsyncMethod, AsyncMethodDecorator } from "./locked-method.ts";
