export { redis, type RedisOptions } from "./one-server.ts";
export type { RedisClient } from "./client.ts";
export type { Connection, Subscription, SubscriptionListener } from "./connection.ts";
