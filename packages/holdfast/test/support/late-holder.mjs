// Acquires the lock "resource" on the Redis of its first message, reports its fencing token, and waits for the second message. Then it
// writes to the resource with that token, whatever happened to its lease, and reports the outcome.
import { once } from "node:events";

import { Redis } from "ioredis";

import { createLocks } from "../../dist/index.js";
import { fenced, fencedRedis, fencedS3 } from "../../dist/fencing/index.js";
import { redis } from "../../dist/drivers/redis/index.js";

const writers = {
  async postgres({ url }, token) {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return async () => {
      const fence = fenced(token, { placeholder: "$2" });
      const update = `UPDATE resource SET content = $1, ${fence.assignment} WHERE ${fence.condition}`;
      return (await client.query(update, ["late", fence.parameter])).rowCount === 1 ? "written" : "stale";
    };
  },

  async mariadb({ url }, token) {
    const { createConnection } = await import("mysql2/promise");
    const connection = await createConnection(url);
    return async () => {
      const fence = fenced(token);
      const update = `UPDATE resource SET content = ?, ${fence.assignment} WHERE ${fence.condition}`;
      const [{ affectedRows }] = await connection.execute(update, ["late", fence.parameter, fence.parameter]);
      return affectedRows === 1 ? "written" : "stale";
    };
  },

  async redis(_, token) {
    const commands = [["SET", "content", "late"]];
    return () => fencedRedis(client, { fenceKey: "fence", fencingToken: token, commands });
  },

  /** Reads the head before the pause, so that only the condition of the put can refuse the write. */
  async s3({ url }, token) {
    const { s3Object } = await import("./s3-object.mjs");
    const object = s3Object(url);
    const before = object.head();
    await before.catch(() => undefined); // no object yet
    let heads = 0;
    const head = () => (heads++ === 0 ? before : object.head());
    return () => fencedS3({ fencingToken: token, body: `late ${token}`, head, put: object.put });
  },
};

const [resource] = await once(process, "message");
const client = new Redis(resource.redisPort);
const locks = createLocks(redis(client));
const lease = await locks.acquire("resource", { ttlMs: 300 });
const write = await writers[resource.kind](resource, lease.fencingToken);
process.send({ fencingToken: String(lease.fencingToken) });
await once(process, "message");
process.send({ outcome: await write(), isLost: lease.signal.aborted || lease.remainingMs() === 0 });
