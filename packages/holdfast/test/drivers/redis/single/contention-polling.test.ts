import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../../support/servers.ts";

onRedis("the waiters of a lock that is held for 30 s", () => {
  test("send at most one command every 5 s each", async () => {
    const server = await startRedis();
    const waiters = Array.from({ length: 4 }, () => createLocks(redis(server.client())));
    try {
      const probe = server.client();
      const token = `${"a".repeat(32)}:${"b".repeat(32)}:1`;
      await probe.set("lock:quiet", `${token} 1 1`, "PX", 30_000);
      const waits = waiters.map((locks) => locks.acquire("quiet", { waitMs: 30_000 }));
      const ended = Promise.allSettled(waits);
      await vi.waitFor(async () => {
        expect(await probe.zcard("holdfast:queue:{lock:quiet}")).toBe(waiters.length);
      });
      const commands = await commandsIn(server, probe, 11_000);
      expect(commands.size).toBe(waiters.length);
      for (const sent of commands.values()) {
        expect(sent.length, sent.join("\n")).toBeLessThanOrEqual(3); // at most at 0, 5 and 10 s
      }
      await Promise.all(waiters.map((locks) => locks.close()));
      await ended;
    } finally {
      await server.stop();
    }
  });
});

/** The commands of clients other than `probe` within that time, by the clients' addresses. */
async function commandsIn(server: RedisServer, probe: Redis, ms: number): Promise<Map<string, string[]>> {
  const commands = new Map<string, string[]>();
  const ownAddress = /addr=(\S+)/.exec(String(await probe.client("INFO")))?.[1];
  const monitor = await server.client().monitor();
  monitor.on("monitor", (_time: string, words: string[], source: string) => {
    const isRegistration = words.some((word) => word.startsWith("holdfast:client:of:"));
    if (source !== "lua" && source !== ownAddress && !isRegistration) {
      commands.set(source, [...(commands.get(source) ?? []), words.slice(0, 8).join(" ")]);
    }
  });
  await new Promise((resolve) => setTimeout(resolve, ms));
  monitor.disconnect();
  return commands;
}
