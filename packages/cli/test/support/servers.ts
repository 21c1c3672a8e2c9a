import { spawnSync } from "node:child_process";

import { redisProgram } from "@holdfast/test-kit";
import { describe } from "vitest";

const isThere = spawnSync(redisProgram, ["--version"]).error === undefined;
if (!isThere && process.env["CI"]) {
  throw new Error("There is no redis-server; in CI these tests may not be skipped");
}

/** `describe` for tests that need a server. */
export const onRedis: ReturnType<typeof describe.skipIf> = describe.skipIf(!isThere);
