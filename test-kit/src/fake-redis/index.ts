export { FakeRedis, type FakeRedisOptions } from "./fake-redis.ts";
export type { MessagePredicate } from "./pub-sub.ts";
export type { Stored } from "./store.ts";
