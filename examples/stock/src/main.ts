import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import { sell, type Sales, type Shop } from "./sell.ts";
import { openTable } from "./stock-table.ts";

const writers = 32;
const requests = 1_000;
/** All writers want one article, which does not suffice for all requests; or they rarely want the same one. */
const stocks = [
  { articles: 1, unitsEach: 750 },
  { articles: 1_000, unitsEach: 2 },
];

const [, , databaseUrl, redisUrl] = process.argv;
if (databaseUrl === undefined || redisUrl === undefined) {
  console.log(
    "node main.js <postgres://… or mysql://…> redis://host:port   sells a stock without a lock, and with one",
  );
  process.exitCode = databaseUrl === "--help" ? 0 : 2;
} else {
  await run(databaseUrl, redisUrl);
}

async function run(database: string, lockServer: string): Promise<void> {
  const client = new Redis(lockServer);
  const locks = createLocks(redis(client));
  try {
    await using table = openTable(database, writers);
    for (const { articles, unitsEach } of stocks) {
      for (const [name, used] of [
        ["optimistic", {}],
        ["with a lock", { locks }],
      ] as const) {
        await table.fill(articles, unitsEach);
        const sales = await sell({ table, articles, writers, requests, ...used } satisfies Shop);
        const { total, least } = await table.remaining();
        report(`${articles} article${articles === 1 ? "" : "s"}, ${name}`, sales);
        if (least < 0 || sales.sold + total !== articles * unitsEach) {
          console.log(`  WRONG: ${sales.sold} units sold, ${total} remain of ${articles * unitsEach}`);
          process.exitCode = 1;
        }
      }
    }
  } finally {
    await locks.close();
    client.disconnect();
  }
}

function report(title: string, { sold, conflicts, seconds }: Sales): void {
  const each = (conflicts / requests).toFixed(2);
  console.log(
    `${title}: ${sold} units sold, ${each} conflicts per request, ${Math.round(requests / seconds)} requests/s`,
  );
}
