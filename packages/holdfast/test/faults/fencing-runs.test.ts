import { expect, test } from "vitest";

import { connect, direct, newKey, onSharedRedis, open, shared } from "../support/fault-stage.ts";

onSharedRedis("fencing tokens of long runs", () => {
  test("never run ahead of the server's clock, and so rise over FLUSHALL", async () => {
    const key = newKey();
    const locks = open(connect(shared.port), {}, { handover: { max: 10_000 } });
    let last = 0n;
    for (let turn = 0; turn < 500; turn += 1) {
      const lease = await locks.acquire(key);
      last = lease.fencingToken;
      await lease.release();
    }
    await direct.flushall();
    const lease = await locks.acquire(key);
    await lease.release();
    expect(lease.fencingToken).toBeGreaterThan(last);
  });
});
