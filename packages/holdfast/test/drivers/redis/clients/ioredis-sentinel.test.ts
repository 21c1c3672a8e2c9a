import { startSentinels, waitUntil, type Sentinels } from "@holdfast/test-kit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { detectConnection, type RedisClient } from "../../../../src/drivers/redis/clients/detect.ts";
import { onRedis } from "../../../support/servers.ts";

onRedis("A connection of ioredis by sentinels", () => {
  let lab: Sentinels;

  beforeAll(async () => {
    lab = await startSentinels({});
  });

  afterAll(async () => {
    await lab.stop();
  });

  test("is closed once, however often that is requested, and opened anew", async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", onWarning);
    const client = new Redis({ sentinels: [...lab.addresses], name: lab.name });
    const connection = detectConnection(client as unknown as RedisClient);
    let [ups, downs] = [0, 0];
    const subscription = connection.subscribe("channel", "plain", {
      connected: () => (ups += 1),
      disconnected: () => (downs += 1),
      message: () => undefined,
    });
    try {
      expect(await connection.command("ECHO", ["before"])).toBe("before");
      await waitUntil(() => ups === 1, "the sentinel has a subscriber");
      for (let times = 0; times < 20; times += 1) {
        connection.refreshPrimary?.();
      }
      await waitUntil(() => ups === 2, "the sentinel has a subscriber again");
      expect(downs).toBe(1);
      expect(await connection.command("ECHO", ["after"])).toBe("after");
      expect(warnings).toEqual([]);
    } finally {
      process.off("warning", onWarning);
      subscription.close();
      connection.close?.();
      client.disconnect();
    }
  });
});
