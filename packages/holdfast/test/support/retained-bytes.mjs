// Acquires and releases many different keys. Prints the bytes of each pair that survive minor collections.
//
//   node retained-bytes.mjs <port> <pairs>
//
// The program uses the built library, as users have it.

import { Session } from "node:inspector/promises";

import { Redis } from "ioredis";

import { redis } from "../../dist/drivers/redis/index.js";
import { createLocks } from "../../dist/index.js";

const [port, pairs] = process.argv.slice(2).map(Number);
const tasks = 64;
const client = new Redis(port);
const locks = createLocks(redis(client));
let used = 0;

async function acquireAndRelease(count) {
  const last = used + count;
  const task = async () => {
    while (used < last) {
      const lease = await locks.acquire(`order:${used++}`);
      await lease.release();
    }
  };
  await Promise.all(Array.from({ length: tasks }, task));
}

await acquireAndRelease(pairs / 4); // the code is compiled
const session = new Session();
session.connect();
await session.post("HeapProfiler.startSampling", {
  samplingInterval: 4096,
  includeObjectsCollectedByMajorGC: true, // the default leaves out the objects that a collection of young objects has removed
});
await acquireAndRelease(pairs);
const { profile } = await session.post("HeapProfiler.stopSampling");
const sizeOf = ({ selfSize, children }) => children.reduce((sum, child) => sum + sizeOf(child), selfSize);
console.log(Math.round(sizeOf(profile.head) / pairs));
await locks.close();
client.disconnect();
