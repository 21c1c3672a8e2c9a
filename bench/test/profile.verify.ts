import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

// A profile shows a slow line in the path of a lock on every machine: shares do not depend on its speed.

interface Profile {
  readonly nodes: readonly { id: number; callFrame: { functionName: string; url: string } }[];
  readonly samples: readonly number[];
}

/** The largest share of one function. It is usually below 0.1. */
const mostShare = 0.2;
const cycles = 25_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

function program(lock: string): string {
  return `
    import { createLocks } from "holdfast";
    import { redis } from "holdfast/redis";
    import { Redis } from "ioredis";
    const client = new Redis(${server.port});
    const locks = createLocks(redis(client));
    let cycle = 0;
    async function work() {
      while (cycle < ${cycles}) {
        const key = "key:" + cycle++;
        const lease = await ${lock}({ ttlMs: 10_000 });
        await lease.release();
      }
    }
    await Promise.all(Array.from({ length: 64 }, work));
    await locks.close();
    client.disconnect();`;
}

async function profileOf(lock: string): Promise<Profile> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-profile-"));
  try {
    const measured = ["--cpu-prof", `--cpu-prof-dir=${folder}`, "--cpu-prof-interval=250"];
    await promisify(execFile)(
      process.execPath,
      [...measured, "--input-type=module", "--eval", program(lock)],
      { cwd: fileURLToPath(new URL("..", import.meta.url)) },
    );
    const [file = ""] = await readdir(folder);
    return JSON.parse(await readFile(join(folder, file), "utf8")) as Profile;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The share of each function in the samples of all functions of Holdfast. Callees have samples of their own. */
function sharesOf({ nodes, samples }: Profile): Map<string, number> {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const counts = new Map<string, number>();
  let total = 0;
  for (const id of samples) {
    const { functionName, url } = frames.get(id)!;
    const file = /packages\/holdfast\/dist\/(.*)/u.exec(url)?.[1];
    if (file !== undefined) {
      const place = `${functionName} in ${file}`;
      counts.set(place, (counts.get(place) ?? 0) + 1);
      total += 1;
    }
  }
  return new Map([...counts].map(([place, count]) => [place, count / total]));
}

test.each([
  ["a mutex", "((options) => locks.acquire(key, options))"],
  ["a semaphore", "((options) => locks.semaphore(key, { limit: 3 }).acquire(options))"],
  ["a try", "((options) => locks.tryAcquire(key, options))"],
])("no function takes a fifth of Holdfast's CPU time for %s", async (_kind, lock) => {
  const shares = sharesOf(await profileOf(lock));
  expect(shares.size).toBeGreaterThan(50);
  expect([...shares].filter(([, share]) => share > mostShare)).toEqual([]);
});
