import { setTimeout as pause } from "node:timers/promises";

import { faultyClient } from "holdfast/testing";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import { connect, direct, newKey, onSharedRedis, open, shared, warmUp } from "../../support/fault-fixture.ts";
import { commandText } from "../../support/diagnostics-log.ts";

onSharedRedis("a release without a reply of the engine", () => {
  test("continues until the end of the TTL that an unanswered extension may have raised", async () => {
    const key = newKey();
    const { connection, controls } = faultyClient(connect(shared.port));
    const locks = open(connection, { commandTimeoutMs: 200 });
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 2_000, renew: false });
    const { validUntil } = lease;
    controls.dropReply(({ args }) => commandText(args).includes("extend"));
    expect((await rejection(lease.extend(20_000))).error).toMatchObject({ outcome: "unknown" });
    expect(await direct.pttl(`lock:${key}`)).toBeGreaterThan(15_000);
    controls.refuse(new Error("Connection is closed."));
    expect((await rejection(lease.release())).error).toMatchObject({ code: "engine-unavailable" });
    // The confirmed TTL would have ended, and so would the longest pause of 2 s between repeats that began before its end.
    await pause(validUntil + 2_500 - performance.now());
    controls.refuse(null);
    await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "the lock is released", 6_000);
  });
});
