import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { createService, newToken, type Service } from "../src/index.ts";
import { sendRequest } from "./support/service.ts";

const [stranger, billing] = [newToken(), newToken()];

let redis: RedisServer;
let service: Service;
let url: string;

beforeAll(async () => {
  redis = await startRedis();
  service = await createService({
    engine: `redis://127.0.0.1:${redis.port}`,
    auth: {
      tokens: [
        { name: "stranger", sha256: stranger.sha256, grants: [] },
        { name: "billing", sha256: billing.sha256, grants: [{ scope: "lock:read", prefix: "order:" }] },
      ],
    },
  });
  url = await service.listen({ port: 0 });
});

afterAll(async () => {
  await service.close();
  await redis.stop();
});

const as = ({ token }: { token: string }): { authorization: string } => ({
  authorization: `Bearer ${token}`,
});

/** The number of executed commands of one name. */
async function callsOf(command: string): Promise<number> {
  const stats = await redis.client().info("commandstats");
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

test("a principal without the right to a prefix makes the engine scan nothing", async () => {
  for (const [principal, prefix] of [
    [stranger, ""],
    [stranger, "order:"],
    [billing, ""],
    [billing, "order"],
    [billing, "stock:"],
  ] as const) {
    for (const path of ["/v1/locks", "/v1/events"]) {
      const response = await sendRequest(url, "GET", `${path}?prefix=${prefix}`, undefined, as(principal));
      expect(response, `${path}?prefix=${prefix}`).toMatchObject({
        status: 403,
        body: { code: "forbidden" },
      });
    }
  }
  expect(await callsOf("scan")).toBe(0);
  const response = await sendRequest(url, "GET", "/v1/locks?prefix=order:", undefined, as(billing));
  expect(response).toMatchObject({ status: 200, body: { locks: [], cursor: null } });
  expect(await callsOf("scan")).toBeGreaterThan(0);
});

test("concurrent probes cost the engine one request", async () => {
  const once = await commandsOf(() => sendRequest(url, "GET", "/readyz"));
  const many = await commandsOf(() =>
    Promise.all(Array.from({ length: 100 }, () => sendRequest(url, "GET", "/readyz"))),
  );
  expect(once).toBeLessThan(30);
  expect(many).toBeLessThan(100); // without sharing: 700
});

async function commandsOf(action: () => Promise<unknown>): Promise<number> {
  const count = async (): Promise<number> =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.client().info("stats"))?.[1]);
  const before = await count();
  await action();
  return (await count()) - before;
}
