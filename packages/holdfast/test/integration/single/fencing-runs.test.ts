import { expect, test } from "vitest";

import { connect, direct, newKey, onSharedRedis, open, shared } from "../../support/fault-fixture.ts";

onSharedRedis("fencing tokens of long runs", () => {
  test("never run ahead of the server's clock, and so rise over FLUSHALL", async () => {
    const key = newKey();
    const locks = open(connect(shared.port), {}, { handover: { max: 10_000 } });
    let last = 0n;
    const callers = Array.from({ length: 8 }, async () => {
      for (let turn = 0; turn < 60; turn += 1) {
        await locks.withLock(key, ({ fencingToken }) => {
          last = fencingToken; // by long runs of handovers in memory
        });
      }
    });
    await Promise.all(callers);
    await direct.flushall();
    const lease = await locks.acquire(key);
    await lease.release();
    expect(lease.fencingToken).toBeGreaterThan(last);
  });
});
