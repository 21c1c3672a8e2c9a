import { hasPgBouncer } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startPgBouncer, type PgBouncer, type PgBouncerOptions } from "@holdfast/test-kit/engines";

/** `describe` for tests that need PgBouncer. */
export const onPgBouncer: ReturnType<typeof describeWith> = describeWith("PgBouncer", hasPgBouncer);
