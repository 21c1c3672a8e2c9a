export { redis } from "./create.ts";
export { redlock } from "./redlock/create.ts";
export type { ObservedLibrary, RedisLayout, RedisOptions, RedisSettings, RedlockOptions } from "./options.ts";
export type { RedisClient } from "./clients/detect.ts";
export type {
  CommandConnection,
  Connection,
  Subscription,
  SubscriptionListener,
} from "./clients/connection.ts";
