import { EngineError } from "holdfast";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";

const ttlMs = 60_000;
const commandTimeoutMs = 500;

onSharedRedis("the holder", () => {
  test("is reported as unknown while the server is unreachable, and not as a free lock", async () => {
    const server = await ownServer();
    const proxy = await ownProxy(server);
    const key = newKey();
    const lease = await open(connect(server.port)).acquire(key, { ttlMs });
    const locks = open(connect(proxy.port), { commandTimeoutMs });
    await warmUp(locks);
    expect((await locks.inspect(key)).holders).toHaveLength(1);
    proxy.refuse(true);
    proxy.cut();
    for (const request of [
      () => locks.inspect(key),
      () => locks.admin.list(),
      () => locks.tryAcquire(key, { ttlMs }),
      () => locks.checkFence(key, lease.fencingToken),
    ]) {
      const { error, afterMs } = await rejection(request());
      expect(error).toBeInstanceOf(EngineError);
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(afterMs).toBeLessThan(commandTimeoutMs + slackMs);
    }
    proxy.refuse(false);
    await waitUntil(
      () =>
        locks.inspect(key).then(
          ({ holders }) => holders.length === 1,
          () => false,
        ),
      "the server answers again",
    );
    expect(await lease.release()).toBe(true);
  });
});
