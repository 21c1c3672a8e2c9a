import { setTimeout as pause } from "node:timers/promises";
import { inspect } from "node:util";

import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import { connect, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

onSharedRedis("a lease on a real server", () => {
  test("a wrong password is reported at once, and not after the wait", async () => {
    const server = await ownServer();
    await server.client().config("SET", "requirepass", "right");
    for (const clientOptions of [{ password: "wrong" }, {}]) {
      const locks = open(connect(server.port, clientOptions));
      for (const call of [
        () => locks.acquire(newKey(), { waitMs: 30_000 }),
        () => locks.tryAcquire(newKey()),
      ]) {
        const { error, afterMs } = await rejection(call());
        expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
        expect(afterMs).toBeLessThan(1_500 * timeFactor);
      }
    }
  });

  test("a user without the right to run scripts gets an error at once", async () => {
    const server = await ownServer();
    await server.client().acl("SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-evalsha", "-eval");
    const locks = open(connect(server.port, { username: "reader", password: "secret" }));
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 30_000 }));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect((error as Error).message).toContain("NOPERM");
    expect(afterMs).toBeLessThan(1_500 * timeFactor);
  });

  test("an error does not show the token at any depth", async () => {
    const server = await ownServer();
    const admin = server.client();
    await admin.acl("SETUSER", "worker", "on", ">secret", "~*", "&*", "+@all");
    const locks = open(connect(server.port, { username: "worker", password: "secret" }));
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs: 60_000 });
    const token = (await admin.get(`lock:${key}`)) ?? "";
    await admin.acl("SETUSER", "worker", "-evalsha", "-eval");
    const { error } = await rejection(lease.release());
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect(token).not.toBe("");
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(token);
  });

  test("a key of another type gets no further request after its refusal", async () => {
    const server = await ownServer();
    const admin = server.client();
    const key = newKey();
    await admin.hset(`lock:${key}`, "a", "1");
    const locks = open(server.client());
    await warmUp(locks);
    const { error } = await rejection(locks.acquire(key));
    expect(error).toMatchObject({ code: "kind-mismatch", key });
    await locks.inspect(newKey()); // commands after the refusal are executed
    await waitUntil(
      async () => (await admin.zcard("holdfast:client:of:lock:")) > 0,
      "the process is registered",
    );
    await admin.config("RESETSTAT");
    await pause(1_000); // a retry would come after 50 ms, 100 ms, ...
    expect(await admin.info("commandstats")).not.toContain("cmdstat_evalsha");
  });
});
