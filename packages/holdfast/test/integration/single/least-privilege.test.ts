import { readFile } from "node:fs/promises";

import { createLocks, type Driver, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { rejection, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { commandsOfScripts, ownCommands } from "../../support/commands.ts";
import { clientConformance, wholeConformance } from "../../support/conformance.ts";
import { onRedis } from "../../support/servers.ts";

const page = await readFile(new URL("../../../../../docs/security.md", import.meta.url), "utf8");
/** The documented rights, for a program of its own and for one of several on a server. */
const [own, shared] = Array.from(page.matchAll(/^ACL SETUSER .*$/gm), ([line]) => line.split(" ")) as [
  string[],
  string[],
];
const forOlderServers = ["subscribe", "publish"];

interface Setup {
  readonly name: string;
  readonly line: readonly string[];
  readonly nodes: number;
  readonly more?: readonly string[];
  readonly query: string;
}

const forbidden: readonly (readonly [string, ...string[]])[] = [
  ["GET", "other"],
  ["SET", "other", "mine"],
  ["DEL", "other"],
  ["EVAL", "return redis.call('GET', 'other')", "0"],
  ["EVAL", "return redis.call('GET', KEYS[1])", "1", "other"],
  ["EVAL", "return redis.call('FLUSHALL')", "0"],
  ["FLUSHALL"],
  ["FLUSHDB"],
  ["KEYS", "*"],
  ["RANDOMKEY"],
  ["RENAME", "lock:a", "other"],
  ["COPY", "other", "lock:a"],
  ["DUMP", "lock:a"],
  ["SELECT", "1"],
  ["SWAPDB", "0", "1"],
  ["CONFIG", "SET", "requirepass", "mine"],
  ["CONFIG", "REWRITE"],
  ["ACL", "SETUSER", "mine"],
  ["ACL", "LIST"],
  ["CLIENT", "LIST"],
  ["CLIENT", "KILL", "TYPE", "normal"],
  ["CLIENT", "PAUSE", "1000"],
  ["SCRIPT", "FLUSH"],
  ["SCRIPT", "KILL"],
  ["FUNCTION", "FLUSH"],
  ["MONITOR"],
  ["SUBSCRIBE", "other"],
  ["PSUBSCRIBE", "*"],
  ["SSUBSCRIBE", "other"],
  ["PUBLISH", "other", "text"],
  ["PUBSUB", "CHANNELS"],
  ["REPLICAOF", "127.0.0.1", "1"],
  ["MIGRATE", "127.0.0.1", "1", "lock:a", "0", "100"],
  ["BGREWRITEAOF"],
  ["SAVE"],
  ["MODULE", "LIST"],
  ["LATENCY", "RESET"],
  ["SLOWLOG", "GET"],
  ["SHUTDOWN", "NOSAVE"],
];

const setups: readonly Setup[] = [
  { name: "one server", line: own, nodes: 1, query: "" },
  {
    name: "a server that others use, with a prefix of its own and by node-redis",
    line: shared,
    nodes: 1,
    more: ["+scan"],
    query: "?prefix=tenant-a:&client=node-redis",
  },
  { name: "a quorum", line: own, nodes: 3, query: "?nodeTimeoutMs=20000&restartGuard=off" },
];

describe("the line of docs/security.md", () => {
  test("allows the commands of the scripts, those that are sent, and no other", () => {
    const needed = new Set([...ownCommands, ...commandsOfScripts()]);
    expect(allowedBy(own)).toEqual(Array.from(needed).sort());
  });

  test("that shares a server allows no more, and omits only what the page permits", () => {
    const spared = [...forOlderServers, "scan"];
    expect(allowedBy(shared)).toEqual(allowedBy(own).filter((command) => !spared.includes(command)));
  });
});

for (const [index, { name, line, nodes, more = [], query }] of setups.entries()) {
  /** The user of one server runs the whole suite. */
  const conformance = index === 0 ? wholeConformance : clientConformance;
  onRedis(`A user with the least rights on ${name}`, () => {
    const user = line[2] as string;
    let servers: RedisServer[];
    let url: string;

    beforeAll(async () => {
      servers = await Promise.all(Array.from({ length: nodes }, () => startRedis()));
      for (const server of servers) {
        await run(server, [...line, ...more]);
      }
      const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
      url = `${nodes > 1 ? "redlock" : "redis"}://${user}:secret@${hosts}${query}`;
    });

    afterAll(async () => {
      await Promise.all(servers.map((server) => server.stop()));
    });

    describe.concurrent("passes the conformance suite:", () => {
      conformance({
        test,
        open: async () => {
          const [driver, other] = (await Promise.all([connect(url), connect(url)])) as [Driver, Driver];
          const keepers = await Promise.all([driver, other].map(subscribed));
          return {
            driver,
            other,
            cleanup: async () => {
              await Promise.all(keepers.map((locks) => locks.close()));
            },
          };
        },
      });
    });

    test("was refused none of its commands", async () => {
      for (const server of servers) {
        expect(await run(server, ["ACL", "LOG"])).toEqual([]);
      }
    });

    test("is refused everything else", async () => {
      const [server] = servers as [RedisServer];
      await run(server, ["SET", "other", "theirs"]);
      const client = server.client({ username: user, password: "secret" });
      for (const command of forbidden) {
        const { error } = await rejection(client.call(...command));
        expect(String(error), command.join(" ")).toMatch(/NOPERM|ACL failure|The user executing the script/);
      }
      expect(await run(server, ["GET", "other"])).toBe("theirs");
    });
  });
}

onRedis("A right that is missing", () => {
  let server: RedisServer;
  let ends: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server.stop();
  });

  afterEach(async () => {
    for (const end of ends.splice(0)) {
      await end();
    }
  });

  /** Locks of a user with the documented rights, except some. */
  async function without(...missing: string[]): Promise<Locks> {
    await run(server, [...own, ...missing]);
    const locks = createLocks(await connect(`redis://holdfast:secret@127.0.0.1:${server.port}`));
    ends.push(() => locks.close());
    return locks;
  }

  test.each([
    ["to a command of the scripts", ["-set"]],
    ["to the scripts", ["-evalsha"]],
    ["to the locks' keys", ["resetkeys", "~holdfast:*"]],
    ["to the keys derived from them", ["resetkeys", "~lock:*", "~holdfast:client:*"]],
  ])("%s is reported at once, and not as a lock that is free or held", async (_what, missing) => {
    const locks = await without(...missing);
    const { error } = await rejection(locks.acquire("key", { waitMs: 20_000 }));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect(String(error)).toMatch(/NOPERM/);
  });

  test("to SCAN is missed by list() alone", async () => {
    const locks = await without("-scan");
    await locks.withLock("key", async () => {
      expect((await locks.inspect("key")).holders).toHaveLength(1);
      expect((await rejection(locks.admin.list())).error).toMatchObject({
        code: "engine-unavailable",
        retryable: false,
      });
    });
  });

  test("to channels makes waiters poll, and is reported", async () => {
    const locks = await without("resetchannels");
    const holder = await locks.acquire("key");
    const other = createLocks(await connect(`redis://holdfast:secret@127.0.0.1:${server.port}`));
    ends.push(() => other.close());
    const waiting = other.acquire("key");
    await waitUntil(
      async () => (await other.admin.nodes())[0]?.notifications === "unavailable",
      "the missing right is reported",
    );
    expect(await holder.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });
});

function allowedBy(line: readonly string[]): string[] {
  return line.flatMap((word) => (word.startsWith("+") ? [word.slice(1)] : [])).sort();
}

async function run(server: RedisServer, [command = "", ...args]: readonly string[]): Promise<unknown> {
  const client = server.client();
  try {
    return await client.call(command, args);
  } finally {
    client.disconnect();
  }
}

/** Keeps a driver open whose notifications are verified on all nodes. */
async function subscribed(driver: Driver): Promise<Locks> {
  const locks = createLocks(driver);
  await locks.inspect("any key makes it connect").catch(() => undefined);
  await waitUntil(
    async () => (await locks.admin.nodes()).every(({ notifications }) => notifications === "verified"),
    "notifications are verified",
  );
  return locks;
}
