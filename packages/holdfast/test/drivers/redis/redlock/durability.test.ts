import { FakeRedis, type FakeRedisOptions } from "@holdfast/test-kit/fake-redis";
import { createLocks } from "holdfast";
import { redlock, type Connection } from "holdfast/redis";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

// A node that was just started votes at once only if each write reaches the disk before its reply.

test("a node that has every write on its disk votes at once", async () => {
  expect(await attempt({ durable: true })).toBe("granted");
});

test("a node that does not report when it writes to its disk may have lost data", async () => {
  expect(await attempt({ durable: true, refuseConfig: true })).toBe("quorum-not-reached");
});

test("a node that writes to its disk once a second may have lost data", async () => {
  expect(await attempt({ durable: true }, onceASecond)).toBe("quorum-not-reached");
});

/** The result of an acquire on three such nodes. */
async function attempt(
  options: Partial<FakeRedisOptions>,
  between: (connection: Connection) => Connection = (connection) => connection,
): Promise<string> {
  const clock = manualClock();
  const servers = [1, 2, 3].map(
    (seed) => new FakeRedis({ clock, random: manualRandom(seed), name: `n${seed}`, ...options }),
  );
  const connections = servers.map((server) => between(server.connect()));
  const locks = createLocks(redlock(connections, { clock, random: manualRandom(9) }));
  const acquired = locks.acquire("k", { waitMs: 500 }).then(
    () => "granted",
    (error: unknown) => (error as { code: string }).code,
  );
  await clock.advance(1_000);
  return acquired;
}

function onceASecond(connection: Connection): Connection {
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: (script, keys, args) => connection.run(script, keys, args),
    command: async (name, args) => {
      const answer = await connection.command(name, args);
      return JSON.parse(JSON.stringify(answer).replace('"always"', '"everysec"')) as unknown;
    },
    subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
    onDown: (listener) => connection.onDown(listener),
  };
}
