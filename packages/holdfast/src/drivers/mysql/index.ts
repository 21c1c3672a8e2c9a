export { mysql } from "./driver.ts";
export type { MysqlOptions } from "./options.ts";
export { assertHeld } from "./assert-held.ts";
export { mysqlSchema } from "./schema.ts";
export type {
  MysqlClient,
  MysqlConnection,
  MysqlStatement,
  MysqlStatements,
  MysqlTransaction,
} from "./client.ts";
