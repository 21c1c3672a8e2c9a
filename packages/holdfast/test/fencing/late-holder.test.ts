import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { fenced, fencedRedis, fencedS3 } from "holdfast/fencing";
import { redis } from "holdfast/redis";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onMariaDb, startMariaDb } from "../support/mariadb-server.ts";
import { onPostgres, startPostgres } from "../support/postgres-server.ts";
import { s3Object } from "../support/s3-object.mjs";
import { onS3, startS3 } from "../support/s3-server.ts";
import { onRedis } from "../support/servers.ts";

// In each test another process holds the lock and is frozen. Its lease expires, this process acquires the lock and writes. Then the
// other process continues and writes with its token.

const program = fileURLToPath(new URL("../support/late-holder.mjs", import.meta.url));
const table = "CREATE TABLE resource (content VARCHAR(20), fence BIGINT NOT NULL DEFAULT 0)";

let locksServer: RedisServer;

beforeAll(async () => {
  locksServer = await startRedis();
});

afterAll(async () => {
  await locksServer.stop();
});

interface Late {
  readonly outcome: "written" | "stale";
  readonly isLost: boolean;
}

/** @param write writes as the next holder. @returns the report of the late holder */
async function afterFreeze(
  resource: { readonly kind: string; readonly url?: string },
  write: (fencingToken: bigint) => Promise<unknown>,
): Promise<Late> {
  const child = fork(program, { stdio: ["ignore", 2, 2, "ipc"], execArgv: [] });
  const ended = once(child, "exit").then(() => Promise.reject(new Error("the late holder ended")));
  ended.catch(() => undefined);
  const message = (): Promise<unknown> => Promise.race([once(child, "message"), ended]);
  const locks = createLocks(redis(locksServer.client()));
  try {
    child.send({ ...resource, redisPort: locksServer.port });
    const [held] = (await message()) as [{ fencingToken: string }];
    child.kill("SIGSTOP");
    const lease = await locks.acquire("resource");
    expect(lease.fencingToken).toBeGreaterThan(BigInt(held.fencingToken));
    await write(lease.fencingToken);
    const reported = message();
    child.send("write");
    child.kill("SIGCONT");
    return ((await reported) as [Late])[0];
  } finally {
    await locks.close();
    child.kill("SIGKILL");
  }
}

const refused: Late = { outcome: "stale", isLost: true };

onRedis("a frozen holder that writes after its lease has expired", () => {
  test("is refused by Redis", async () => {
    const client = locksServer.client();
    const late = await afterFreeze({ kind: "redis" }, (fencingToken) =>
      fencedRedis(client, { fenceKey: "fence", fencingToken, commands: [["SET", "content", "next"]] }),
    );
    expect(late).toEqual(refused);
    expect(await client.get("content")).toBe("next");
  });

  onPostgres("on PostgreSQL", () => {
    test("is refused by the row", async () => {
      const server = await startPostgres();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(table);
      await client.query("INSERT INTO resource VALUES ('first')");
      const late = await afterFreeze({ kind: "postgres", url: server.url }, (fencingToken) => {
        const fence = fenced(fencingToken, { placeholder: "$2" });
        const update = `UPDATE resource SET content = $1, ${fence.assignment} WHERE ${fence.condition}`;
        return client.query(update, ["next", fence.parameter]);
      });
      expect(late).toEqual(refused);
      expect((await client.query("SELECT content FROM resource")).rows).toEqual([{ content: "next" }]);
      await client.end();
      await server.stop();
    });
  });

  onMariaDb("on MariaDB", () => {
    test("is refused by the row", async () => {
      const server = await startMariaDb();
      const client = await createConnection(server.url);
      await client.query(table);
      await client.query("INSERT INTO resource (content) VALUES ('first')");
      const late = await afterFreeze({ kind: "mariadb", url: server.url }, (fencingToken) => {
        const fence = fenced(fencingToken);
        const update = `UPDATE resource SET content = ?, ${fence.assignment} WHERE ${fence.condition}`;
        return client.execute(update, ["next", fence.parameter, fence.parameter]);
      });
      expect(late).toEqual(refused);
      expect((await client.query("SELECT content FROM resource"))[0]).toEqual([{ content: "next" }]);
      await client.end();
      await server.stop();
    });
  });

  onS3("on S3", () => {
    test.each(["a new object", "an object of an earlier holder"])(
      "is refused by the conditional write of %s, though it read the head before",
      async (kind) => {
        const server = await startS3();
        const url = `${server.bucket}/content`;
        const { head, put, content } = s3Object(url);
        if (kind !== "a new object") {
          await fencedS3({ fencingToken: 1n, body: "first 1", head, put });
        }
        const late = await afterFreeze({ kind: "s3", url }, (fencingToken) =>
          fencedS3({ fencingToken, body: `next ${fencingToken}`, head, put }),
        );
        expect(late).toEqual(refused);
        expect(await content()).toMatch(/^next /);
        await server.stop();
      },
    );
  });
});
