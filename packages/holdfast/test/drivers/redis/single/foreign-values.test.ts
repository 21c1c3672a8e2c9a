import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../../../src/drivers/redis/clients/detect.ts";
import { counterKey, KeySpace } from "../../../../src/drivers/redis/protocol/keys.ts";
import { executeSingleScript } from "../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../support/servers.ts";
import { requester } from "../../../support/script-fixture.ts";

const valueBytes = 5_000_000;
const mostAnswered = 100_000;

onRedis("a value of another program, of 5 MB", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  async function answered(): Promise<number> {
    const info = await server.client().info("stats");
    return Number(/total_net_output_bytes:(\d+)/.exec(info)?.[1]);
  }

  test("is not sent to tries, waiters, inspections or releases", async () => {
    const client = server.client();
    const locks = createLocks(redis(client));
    const lease = await locks.acquire("warm");
    await lease.release();
    const keys = new KeySpace("", "lock:").keysOf("foreign");
    await client.set(keys[0], "x".repeat(valueBytes));
    const release = ["100", "release", requester(1).token, "", "1"];
    const requests: Readonly<Record<string, () => Promise<unknown>>> = {
      tries: () => locks.tryAcquire("foreign"),
      waits: () => locks.acquire("foreign", { waitMs: 300 }).catch(() => undefined),
      "acquires several": () => locks.all(["foreign", "other"]).tryAcquire(),
      inspects: () => locks.inspect("foreign"),
      lists: () => locks.admin.list(),
      releases: () => detectConnection(client).run(executeSingleScript, [counterKey(), ...keys], release),
    };
    for (const [caller, request] of Object.entries(requests)) {
      const before = await answered();
      await request();
      expect((await answered()) - before, caller).toBeLessThan(mostAnswered);
    }
    expect(await client.strlen(keys[0])).toBe(valueBytes);
    await locks.close();
  });
});
