// Holds a lease of one minute and does nothing else. The lease must not keep the process alive, so the process ends at once.
// Uses the Redis at the port in its argument, or memory without an argument.
import { createLocks } from "../../dist/index.js";
import { memory } from "../../dist/drivers/memory/driver.js";
import { redis } from "../../dist/drivers/redis/index.js";

const port = process.argv[2];
let driver = memory();
let unref = () => undefined;
if (port !== undefined) {
  const { Redis } = await import("ioredis");
  const client = new Redis({ host: "127.0.0.1", port: Number(port) });
  driver = redis(client);
  unref = () => client.stream.unref(); // the caller owns the client
}
const lease = await createLocks(driver).acquire("held", { ttlMs: 60_000 });
lease.signal.addEventListener("abort", () => console.log("lost"));
unref();
console.log("held");
