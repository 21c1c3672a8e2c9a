import { hasMariaDb } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startMariaDb, type MariaDbServer } from "@holdfast/test-kit/engines";

/** `describe` for tests that need MariaDB. */
export const onMariaDb: ReturnType<typeof describeWith> = describeWith("MariaDB", hasMariaDb);
