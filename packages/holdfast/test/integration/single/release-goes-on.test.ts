import { setTimeout as pause } from "node:timers/promises";

import { faultyClient } from "holdfast/testing";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import { connect, direct, newKey, onSharedRedis, open, shared, warmUp } from "../../support/fault-fixture.ts";
import { commandText } from "../../support/diagnostics-log.ts";

onSharedRedis("a release that the engine does not answer", () => {
  test("goes on until the TTL is over that an unanswered extension may have raised", async () => {
    const key = newKey();
    const { connection, controls } = faultyClient(connect(shared.port));
    const locks = open(connection, { commandTimeoutMs: 200 });
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 500, renew: false });
    const { validUntil } = lease;
    controls.dropReply(({ args }) => commandText(args).includes("extend"));
    expect((await rejection(lease.extend(20_000))).error).toMatchObject({ outcome: "unknown" });
    expect(await direct.pttl(`lock:${key}`)).toBeGreaterThan(15_000);
    controls.refuse(new Error("Connection is closed."));
    expect((await rejection(lease.release())).error).toMatchObject({ code: "engine-unavailable" });
    await pause(validUntil + 300 - performance.now()); // by the TTL that was confirmed it would be over
    controls.refuse(null);
    await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "it is released", 6_000);
  });
});
