export { optimistic, OptimisticConflictError, type OptimisticOptions } from "./optimistic.ts";
export type { OptimisticUpdate, WriteResult } from "./optimistic.ts";
export { versionedRow, type VersionedRowOptions } from "./versioned-row.ts";
export type { KyselyClient, Mysql2Client, PgClient, PostgresJsClient, RowClient } from "./row-clients.ts";
