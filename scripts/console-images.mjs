// Writes the pictures of the web console in docs/images. It needs redis-server and chromium, and takes two minutes, because a hold must become
// long. Usage: npm run build && node scripts/console-images.mjs

import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { createLocks } from "../packages/holdfast/dist/index.js";
import { redis } from "../packages/holdfast/dist/drivers/redis/index.js";
import { createService } from "../packages/server/dist/index.js";
import { launchBrowser } from "../test-kit/dist/edge/index.js";
import { startRedis } from "../test-kit/dist/index.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const longMs = 95_000;

const server = await startRedis();
const locksOf = (owner) => createLocks(redis(server.client()), { owner });
const service = await createService({ engine: `redis://127.0.0.1:${server.port}` });
const url = await service.listen({ port: 0 });
const browser = await launchBrowser();

const exporter = locksOf("exporter@vm-9:3120");
const labels = { job: "reports", region: "eu" };
const report = await exporter.acquire("report:daily", { reason: "export the report", labels });
const jobs = [0, 1, 2, 3].map((index) => locksOf(`job-${index}@vm-${index}:10${index}`));
for (const job of jobs) job.acquire("report:daily", { waitMs: 600_000 }).catch(() => undefined);
const pods = [4711, 4713, 4709].map((pid, index) => locksOf(`billing@pod-${index}:${pid}`));
const work = new AbortController();
const busy = Array.from({ length: 14 }, async (_, index) => {
  while (!work.signal.aborted) {
    const lease = await pods[index % 3].acquire(`order:${1000 + index}`, { reason: "charge" });
    await pause(2_000 + ((index * 977) % 5_000));
    await lease.release();
  }
});

await open("dark", "").then((page) => page.close());
await pause(longMs);
for (const theme of ["light", "dark"]) {
  for (const [name, path] of [
    ["locks", ""],
    ["lock", "lock?key=report%3Adaily"],
  ]) {
    const page = await open(theme, path);
    await page.screenshot({ path: join(root, `docs/images/console-${name}-${theme}.png`) });
    await page.close();
  }
}

work.abort();
await report.release();
await Promise.all(busy);
await browser.close();
await service.close();
await server.stop();
process.exit(0);

/** A page after its first data. */
async function open(colorScheme, path) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme });
  await page.goto(`${url}/console/${path}`);
  await page.getByText("report:daily").first().waitFor();
  await pause(9_000);
  return page;
}
