export { upstash, type UpstashOptions } from "./create.ts";
export type { UpstashClient } from "./connection.ts";
