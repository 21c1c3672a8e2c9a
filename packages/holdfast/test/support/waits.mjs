// Waits for a lock on the Redis at the given port, and prints its events as lines of JSON.
// Arguments: port, key, ttlMs
import { createLocks } from "../../dist/index.js";
import { redis } from "../../dist/drivers/redis/index.js";
import { Redis } from "ioredis";

const [port, key, ttlMs] = process.argv.slice(2);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const locks = createLocks(redis(client), { owner: "child" });
await locks.withLock(`${key}:warm-up`, () => undefined); // determines the server's time, so that no ticket is a guess
const lease = await locks.acquire(key, { ttlMs: Number(ttlMs), waitMs: 60_000 });
try {
  lease.throwIfLost();
  say({ granted: lease.fencingToken.toString() });
} catch (error) {
  say({ lost: error.reason });
}
lease.signal.addEventListener("abort", () => say({ lost: lease.signal.reason.reason }));
