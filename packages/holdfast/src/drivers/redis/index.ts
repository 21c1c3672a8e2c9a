export { redis } from "./open-redis.ts";
export { redlock } from "./redlock.ts";
export type { RedisOptions, RedlockOptions } from "./options.ts";
export type { RedisClient } from "./client.ts";
export type { CommandLine, Connection, Subscription, SubscriptionListener } from "./connection.ts";
