import { expect, test } from "vitest";
import { rejection, timeFactor } from "@holdfast/test-kit";

import { onCleanup, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

const waiters = 4_000;
const waitMs = 2_200;
/** Added to the wait: 250 ms to request the holder's name, and the lateness of a busy machine for all callers. */
const latenessMs = 1_300 * timeFactor;

onSharedRedis("under a frozen server", () => {
  test(`${waiters} callers at once wait for no longer than waitMs`, async () => {
    const server = await ownServer();
    const locks = open(server.client());
    await warmUp(locks);
    server.freeze();
    onCleanup(() => {
      server.thaw();
    });
    const waitedMs = await Promise.all(
      Array.from({ length: waiters }, async () => {
        const begun = performance.now();
        const { error } = await rejection(locks.acquire(newKey(), { waitMs }));
        expect(error).toMatchObject({ code: "engine-unavailable" });
        return performance.now() - begun;
      }),
    );
    expect(Math.min(...waitedMs)).toBeGreaterThan(waitMs - 20);
    expect(Math.max(...waitedMs)).toBeLessThan(waitMs + latenessMs);
  });
});
