import { hasS3 } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startS3, type S3Server } from "@holdfast/test-kit/engines";

/** `describe` for tests that need moto, an S3-compatible server in Python. */
export const onS3: ReturnType<typeof describeWith> = describeWith("moto", hasS3());
