export { fenced, type FencedOptions, type FencedSql } from "./fenced-sql.ts";
export { fencedRedis, type FencedRedisClient, type FencedWrite } from "./fenced-redis.ts";
export type { IoredisScripts, NodeRedisClusterScripts, NodeRedisScripts } from "./fenced-redis.ts";
export { fencedPut, fencedS3, type FencedS3Write, type S3Head, type S3Put } from "./fenced-s3.ts";
export type { FencedOutcome } from "./outcome.ts";
