export { postgres } from "./driver.ts";
export type { PostgresOptions } from "./options.ts";
export { assertHeld } from "./assert-held.ts";
export { postgresSchema } from "./schema.ts";
export type { PgClient, PostgresClient, PostgresJsClient, PostgresQuery } from "./client.ts";
