import { hasPostgres } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startPostgres, startStandby, type PostgresServer } from "@holdfast/test-kit/engines";

/** `describe` for tests that need PostgreSQL. */
export const onPostgres: ReturnType<typeof describeWith> = describeWith("PostgreSQL", hasPostgres);
