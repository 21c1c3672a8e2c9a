import { createLocks, isLockError } from "holdfast";
import { connect } from "holdfast/connect";
import { expect, test } from "vitest";
import { stablePort } from "@holdfast/test-kit";

test.each(["postgres", "mysql", "etcd", "zookeeper", "nacos", "http"])(
  "an unreachable %s is named with the reason",
  async (scheme) => {
    const port = await stablePort();
    const path = ["postgres", "mysql"].includes(scheme) ? "/test" : "";
    const locks = createLocks(
      await connect(`${scheme}://127.0.0.1:${port}${path}`, { commandTimeoutMs: 500 }),
    );
    for (const call of [() => locks.tryAcquire("key"), () => locks.acquire("key", { waitMs: 600 })]) {
      const error: unknown = await call().catch((caught: unknown) => caught);
      expect(isLockError(error, "engine-unavailable") && error.retryable).toBe(true);
      expect((error as Error).message).toMatch(new RegExp(`connect ECONNREFUSED 127.0.0.1:${port}`));
    }
    await locks.close();
  },
);
