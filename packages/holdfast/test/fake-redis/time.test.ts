import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { expect, test } from "vitest";

import { systemClock, type Clock } from "../../src/runtime/clock.ts";
import { executeQuorumScript } from "../../src/drivers/redis/protocol/scripts.generated.ts";

/** A clock that advances with each read. */
function hurriedClock(): Clock {
  let now = Date.now();
  const look = (): number => (now += 1);
  return { ...systemClock, now: look, wall: look };
}

test("a key that exists at the start of a script does not expire during the script, as on a server", async () => {
  const server = new FakeRedis({ clock: hurriedClock() });
  const keys = ["lock:k", "holdfast:queue:{lock:k}", "holdfast:info:{lock:k}", "holdfast:fence:{lock:k}"];
  let held = 0;
  for (let ttlMs = 1; ttlMs <= 40; ttlMs += 1) {
    server.set("lock:k", "somebody's", ttlMs);
    const answers = await server
      .connect()
      .run(executeQuorumScript, keys, ["3600000", "100", "600", '["inspect","0"]']);
    const [holder, left] = (answers as [unknown, [string, number]])[1];
    held += holder === "" ? 0 : 1;
    expect(left >= 0, `held by "${holder}", ${left} ms left`).toBe(holder !== "");
  }
  expect(held).toBeGreaterThan(0);
});
