export { postgres } from "./driver.ts";
export type { PostgresOptions } from "./options.ts";
export { assertHeld } from "./assert-held.ts";
export { postgresSchema } from "./schema.ts";
export type {
  PgClient,
  PgPool,
  PostgresClient,
  PostgresJs,
  PostgresJsStatement,
  PostgresJsTransaction,
  PostgresQuery,
  PostgresTransaction,
} from "./client.ts";
