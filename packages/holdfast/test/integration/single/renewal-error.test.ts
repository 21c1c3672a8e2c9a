import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { connect, newKey, onSharedRedis, open, ownServer, renewals } from "../../support/fault-fixture.ts";

const ttlMs = 3_000;

onSharedRedis("a lease on a real server", () => {
  test("one transient error at renewal loses nothing", async () => {
    const server = await ownServer();
    const admin = server.client();
    const key = newKey();
    const outcomes = renewals(key);
    const lease = await open(connect(server.port)).acquire(key, { ttlMs });
    await admin.config("SET", "min-replicas-to-write", "1"); // every write is refused with an error
    await waitUntil(() => outcomes.includes("unknown"), "a renewal is refused");
    await admin.config("SET", "min-replicas-to-write", "0");
    expect(outcomes).toEqual(["unknown"]);
    const granted = lease.validUntil;
    await waitUntil(() => lease.validUntil > granted + ttlMs || lease.signal.aborted, "renewals");
    expect([lease.signal.aborted, outcomes.includes("lost")]).toEqual([false, false]);
    expect(await lease.release()).toBe(true);
  });
});
