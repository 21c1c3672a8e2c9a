import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis, type RedisClient } from "holdfast/redis";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createClient as createClient6 } from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { rejection, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { detectConnection } from "../../../src/drivers/redis/clients/detect.ts";
import { onRedis } from "../../support/servers.ts";

/** The connection settings of a client. */
interface Access {
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
}

let server: RedisServer;
let ends: (() => unknown)[] = [];
let names = 0;

/** A client's locks, whose handshake may fail. */
const ways: Readonly<Record<string, (access: Access) => Promise<Locks>>> = {
  "ioredis 6": async (access) => ofIoredis(new Ioredis6(ioredisOptions(access))),
  "ioredis 5": async (access) => ofIoredis(new Ioredis5(ioredisOptions(access))),
  "ioredis 6 without a ready check": async (access) =>
    ofIoredis(new Ioredis6({ ...ioredisOptions(access), enableReadyCheck: false })),
  "ioredis 5 without a ready check": async (access) =>
    ofIoredis(new Ioredis5({ ...ioredisOptions(access), enableReadyCheck: false })),
  "node-redis 6": async (access) => ofNodeRedis(createClient6, access),
  "node-redis 6 with RESP 2": async (access) =>
    ofNodeRedis((options) => createClient6({ ...options, RESP: 2 }), access),
  "node-redis 5": async (access) => ofNodeRedis(createClient5, access),
  "node-redis 4": async (access) => ofNodeRedis(createClient4, access),
  "connect() by ioredis": async (access) => connected("ioredis", access),
  "connect() by node-redis": async (access) => connected("node-redis", access),
};

onRedis("A connection", () => {
  beforeAll(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    for (const end of ends.reverse()) {
      await end();
    }
    ends = [];
  });

  afterAll(async () => {
    await server.stop();
  });

  test("of node-redis 6 with many commands under way warns of nothing", async () => {
    const client = createClient6({ socket: { host: "127.0.0.1", port: server.port } });
    await client.connect();
    ends.push(() => client.destroy());
    const warnings: Error[] = [];
    const warned = (warning: Error): number => warnings.push(warning);
    process.on("warning", warned);
    ends.push(() => process.off("warning", warned));
    const connection = detectConnection(client as unknown as RedisClient);
    await Promise.all(Array.from({ length: 50 }, () => connection.command("PING", [])));
    await new Promise(setImmediate); // warnings are emitted in a turn of their own
    expect(warnings).toEqual([]);
  });

  describe.each(Object.keys(ways))("of %s", (proxy) => {
    const open = (access: Access): Promise<Locks> => (ways[proxy] as (typeof ways)[string])(access);

    test("whose user may not select the database serves no lock", async () => {
      const user = await newUser("-select");
      const locks = await open({ ...user, database: 3 });
      await expectRefusal(locks, /database 3\b.*(NOPERM|ACL failure|The user executing the script)/);
    });

    test("to a database that the server does not have serves no lock", async () => {
      const locks = await open({ database: 99 });
      await expectRefusal(locks, /database 99\b.*DB index is out of range/);
    });

    test("that may no longer select the database after a reconnect serves no lock", async () => {
      const user = await newUser();
      const locks = await open({ ...user, database: 3 });
      const held = await locks.acquire("before", { ttlMs: 60_000 });
      await admin("ACL", "SETUSER", user.username, "-select");
      await admin("CLIENT", "KILL", "USER", user.username);
      await expectRefusal(locks, /database 3\b.*(NOPERM|ACL failure|The user executing the script)/);
      await admin("ACL", "SETUSER", user.username, "+select");
      await admin("CLIENT", "KILL", "USER", user.username);
      await granted(locks);
      expect(await held.release()).toBe(true);
    });

    test("with a wrong password serves no lock as the open default user", async () => {
      const user = await newUser();
      await expectRefusal(await open({ ...user, password: "wrong" }), /WRONGPASS/);
    });

    test("serves no lock after its user was renamed", async () => {
      const user = await newUser();
      const locks = await open(user);
      await granted(locks);
      await newUser();
      await admin("ACL", "DELUSER", user.username);
      await expectRefusal(locks, /WRONGPASS/);
    });
  });

  test.each(["ioredis", "node-redis"])("of a quorum by %s serves no lock in another database", async (by) => {
    const user = await newUser("-select");
    const url = `redlock://${user.username}:secret@127.0.0.1:${server.port}/3?client=${by}`;
    const locks = kept(createLocks(await connect(url)));
    await expectRefusal(locks, /Expected (user.*)?database 3\b/, "quorum-not-reached");
  });

  test.each<CreateClient>([createClient6, createClient5, createClient4])(
    "of node-redis that may be the default user's, as its user has no password, is refused",
    (createClient) => {
      const client = createClient({ username: "somebody" });
      expect(() => redis(client as RedisClient)).toThrow(/password beside its username/);
    },
  );
});

/** The error has the cause at once, and the key is in no database. */
async function expectRefusal(locks: Locks, reason: RegExp, code = "engine-unavailable"): Promise<void> {
  const key = newName();
  let refusal: unknown;
  await waitUntil(async () => {
    const { error } = await rejection(locks.acquire(key, { waitMs: 5_000 }));
    expect(error).toMatchObject({ code });
    refusal = error;
    return (error as { retryable?: boolean }).retryable === false; // otherwise of the killed connection
  }, "a refusal");
  expect(String(refusal)).toMatch(reason);
  for (const db of [0, 3]) {
    const client = server.client({ db });
    expect(await client.exists(`lock:${key}`)).toBe(0);
    client.disconnect();
  }
}

/** The server accepts the user again. */
async function granted(locks: Locks): Promise<void> {
  await waitUntil(async () => {
    try {
      return await (await locks.acquire(newName(), { waitMs: 5_000 })).release();
    } catch (error) {
      expect(error).toMatchObject({ code: "engine-unavailable" });
      return false;
    }
  }, "a grant");
}

function newName(): string {
  names += 1;
  return `handshake-${names}`;
}

async function newUser(...rules: string[]): Promise<{ username: string; password: string }> {
  const username = newName();
  await admin("ACL", "SETUSER", username, "on", ">secret", "~*", "&*", "+@all", ...rules);
  return { username, password: "secret" };
}

async function admin(command: string, ...args: string[]): Promise<void> {
  const client = server.client();
  await client.call(command, args);
  client.disconnect();
}

function kept(locks: Locks): Locks {
  ends.push(() => locks.close());
  return locks;
}

function ioredisOptions({ database = 0, ...user }: Access): {
  host: string;
  port: number;
  db: number;
  retryStrategy: () => number;
} {
  return { host: "127.0.0.1", port: server.port, db: database, retryStrategy: () => 20, ...user };
}

function ofIoredis(client: Ioredis5 | Ioredis6): Locks {
  client.on("error", () => undefined);
  ends.push(() => {
    client.disconnect();
  });
  return kept(createLocks(redis(client), { closeTimeoutMs: 500 }));
}

type CreateClient = (options: object) => { on(event: "error", listener: () => void): unknown };

function ofNodeRedis(createClient: CreateClient, access: Access): Locks {
  const socket = { host: "127.0.0.1", port: server.port, reconnectStrategy: () => 20 };
  const client = createClient({ socket, ...access }) as RedisClient & {
    connect(): Promise<unknown>;
    destroy?(): void;
    disconnect(): Promise<unknown>;
    on(event: "error", listener: () => void): unknown;
  };
  client.on("error", () => undefined);
  client.connect().catch(() => undefined);
  ends.push(() => {
    if (client.destroy) {
      client.destroy();
    } else {
      return client.disconnect().catch(() => undefined);
    }
  });
  return kept(createLocks(redis(client), { closeTimeoutMs: 500 }));
}

async function connected(by: string, { username = "", password = "", database = 0 }: Access): Promise<Locks> {
  const user = username === "" ? "" : `${username}:${password}@`;
  const url = `redis://${user}127.0.0.1:${server.port}/${database}?client=${by}`;
  return kept(createLocks(await connect(url), { closeTimeoutMs: 500 }));
}
