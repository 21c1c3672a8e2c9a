// Holds a lease for a minute, as far as it is concerned, and has nothing else to do: it has to end by itself at once.
// With a port as its argument on the Redis there, else in memory.
import { createLocks } from "../../dist/index.js";
import { memory } from "../../dist/drivers/memory/driver.js";
import { redis } from "../../dist/drivers/redis/index.js";

const port = process.argv[2];
let driver = memory();
let letGo = () => undefined;
if (port !== undefined) {
  const { Redis } = await import("ioredis");
  const client = new Redis({ host: "127.0.0.1", port: Number(port) });
  driver = redis(client);
  letGo = () => client.stream.unref(); // the client is the caller's own
}
const lease = await createLocks(driver).acquire("held", { ttlMs: 60_000 });
lease.signal.addEventListener("abort", () => console.log("lost"));
letGo();
console.log("held");
