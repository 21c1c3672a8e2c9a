import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rejection, stablePort } from "@holdfast/test-kit";

import { systemClock } from "../../../../../src/runtime/clock.ts";
import type { Connection } from "../../../../../src/drivers/redis/clients/connection.ts";
import { counterKey, type LockKeys } from "../../../../../src/drivers/redis/protocol/keys.ts";
import type { Script } from "../../../../../src/drivers/redis/protocol/script.ts";
import {
  executeSingleScript,
  scanScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture } from "../../../../support/script-fixture.ts";

const settings = ["100"];
const latest = "9999999999999";
const [ours, rival] = [requester(1), requester(2)];
const latch = [ours.token, "3", "60000", "", latest];

type ScriptCall = readonly [script: Script, keys: readonly string[], args: readonly string[]];

function operation(keys: LockKeys, ...args: string[]): ScriptCall {
  return [executeSingleScript, [counterKey(), ...keys], [...settings, ...args]];
}

onRedis("a replica, real or fake,", () => {
  let fixture: ScriptFixture;
  let own: FakeRedis;
  let connections: readonly Connection[];
  let requests: Readonly<Record<string, ScriptCall>>;

  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    own = new FakeRedis({ clock: systemClock });
    connections = [fixture.connection, own.connect()];
    const [held, other, counted] = Array.from({ length: 3 }, () => fixture.lock()) as [
      LockKeys,
      LockKeys,
      LockKeys,
    ];
    for (const connection of connections) {
      await connection.run(...operation(held, ...acquireOf(ours)));
      await connection.run(...operation(other, ...acquireOf(ours)));
      await connection.run(...operation(counted, "countDown", ...latch));
    }
    requests = {
      tries: operation(held, ...acquireOf(rival)),
      waits: operation(held, ...acquireOf(rival, { wait: "1" })),
      "repeats its acquire": operation(held, ...acquireOf(ours)),
      "verifies its grant": operation(held, "verify", ours.token),
      "extends a lost grant": operation(held, "extend", rival.token, "30000", "", ""),
      inspects: operation(held, "inspect"),
      "repeats its count": operation(counted, "countDown", ...latch),
      "looks at a latch": operation(counted, "waitLatch", ...latch, "n"),
      scans: [scanScript, [], ["0", "lock:*", "100"]],
    };
    for (const connection of connections) {
      for (const request of Object.values(requests)) {
        await connection.run(...request); // a primary replies
      }
    }
    await fixture.redis.replicaof("127.0.0.1", await stablePort());
    own.setRole("slave");
  });
  afterAll(() => fixture.close());

  test("gives no reply", async () => {
    for (const connection of connections) {
      for (const [caller, request] of Object.entries(requests)) {
        const { error } = await rejection(connection.run(...request));
        expect(String(error), caller).toMatch(/\bREADONLY\b/);
      }
    }
  });
});

onRedis("a writable replica", () => {
  test("is not verified as a primary by its errors", async () => {
    const fixture = await ScriptFixture.open();
    const [held, other] = [fixture.lock(), fixture.lock()];
    await fixture.grant(held, ours);
    await fixture.redis.zadd(held[1], 2, requester(2, { ttlMs: 0 }).member); // cannot be granted
    const operations = [
      [held, ["release", ours.token, ours.entryTail, "1"]],
      [other, ["extend", ours.token, "30000", "", ""]],
    ] as const;
    await fixture.redis.config("SET", "replica-read-only", "no");
    await fixture.redis.replicaof("127.0.0.1", await stablePort());
    const { error } = await rejection(fixture.batch(operations));
    expect(String(error)).toMatch(/\bREADONLY\b/);
    await fixture.close();
  });
});

test("a replica that gets a request for several keys is disconnected", async () => {
  const server = new FakeRedis({ clock: systemClock });
  const connection = server.connect();
  let suspicions = 0;
  connection.refreshPrimary = () => {
    suspicions += 1;
  };
  const locks = createLocks(redis(connection));
  const all = locks.all(["a", "b"]);
  await all.withLock(() => undefined);
  server.setRole("slave");
  const { error } = await rejection(all.tryAcquire());
  expect(error).toMatchObject({ code: "engine-unavailable", outcome: "none" });
  expect(suspicions).toBe(1);
  server.setRole("master");
  await locks.close();
});
