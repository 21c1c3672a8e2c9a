import { setTimeout as pause } from "node:timers/promises";

import { Redis } from "ioredis";

import { Front } from "./front.ts";

const orders = Array.from({ length: 60 }, (_, index) => `order:${index}`);
const requestsPerOrder = 10; // at least

const [, , url] = process.argv;
if (url === undefined || url.startsWith("-")) {
  console.log(
    "node main.js redis://host:port   runs instances that join and crash, and checks that no update is lost",
  );
  process.exitCode = url === undefined ? 2 : 0;
} else {
  await run(url);
}

async function run(redisUrl: string): Promise<void> {
  const prefix = `routing-example:${process.pid}:`;
  const client = new Redis(redisUrl);
  const front = new Front(redisUrl, prefix);
  const acknowledged = new Map<string, number[]>(orders.map((order) => [order, []]));
  let lastId = 0;

  /** Sends requests for all orders until the members have changed. */
  const traffic = async (title: string, change: () => Promise<void>): Promise<void> => {
    const before = orders.map((order) => front.ring.ownerOf(order));
    const round = (): Promise<unknown> =>
      Promise.all(
        orders.map(async (order) => {
          const id = ++lastId;
          await front.request(id, order);
          acknowledged.get(order)?.push(id);
        }),
      );
    let isChanged = false;
    const changed = change().finally(() => (isChanged = true));
    const firstId = lastId + 1;
    for (let rounds = 0; rounds < requestsPerOrder || !isChanged; rounds += 1) {
      await round();
      await pause(5);
    }
    await changed;
    const moved = orders.filter((order, index) => front.ring.ownerOf(order) !== before[index]).length;
    console.log(`${title}: ${lastId - firstId + 1} requests, ${moved} of ${orders.length} orders moved`);
  };

  try {
    await Promise.all(["instance-1", "instance-2", "instance-3"].map((name) => front.start(name)));
    await front.publish();
    await traffic("three instances", async () => undefined);
    await traffic("instance-4 joins", async () => {
      await front.start("instance-4");
      await front.publish();
    });
    await traffic("instance-2 is killed", async () => {
      await front.kill("instance-2");
      await front.publish();
    });
    await report(client, prefix, acknowledged);
  } finally {
    await front.close();
    await removeKeys(client, prefix);
    client.disconnect();
  }
}

/** Compares the stored orders with the acknowledged requests. */
async function report(client: Redis, prefix: string, acknowledged: Map<string, number[]>): Promise<void> {
  let lost = 0;
  let mixed = 0;
  for (const [order, ids] of acknowledged) {
    const stored = new Set(JSON.parse((await client.get(`${prefix}${order}`)) ?? "[]") as number[]);
    lost += ids.filter((id) => !stored.has(id)).length;
    mixed += isMixed(await client.lrange(`${prefix}${order}:log`, 0, -1)) ? 1 : 0;
  }
  console.log(`acknowledged requests that are lost: ${lost}`);
  console.log(`orders that two instances served in turns: ${mixed}`);
  process.exitCode = lost + mixed === 0 ? 0 : 1;
}

/** @param log of one order, `token instance` for each write. Each token has one instance, and the tokens rise. */
function isMixed(log: readonly string[]): boolean {
  const turns = log.filter((entry, index) => entry !== log[index - 1]);
  const tokens = turns.map((entry) => BigInt(entry.split(" ")[0] as string));
  return tokens.some((token, index) => index > 0 && token <= (tokens[index - 1] as bigint));
}

async function removeKeys(client: Redis, prefix: string): Promise<void> {
  const keys = await client.keys(`${prefix}*`);
  if (keys.length > 0) {
    await client.del(keys);
  }
}
