import { waitUntil } from "@holdfast/test-kit";
import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { systemClock } from "../../../../../src/runtime/clock.ts";
import { detectConnection } from "../../../../../src/drivers/redis/clients/detect.ts";
import type { Connection } from "../../../../../src/drivers/redis/clients/connection.ts";
import {
  handshakeScript,
  healthScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import { acquireOf, requester, ScriptFixture, type ScriptReply } from "../../../../support/script-fixture.ts";

const runId = /^[\da-f]{40}$/;
const handshake = [["client"], ["channel", "n", "", "60000", "owner", "a"]] as const;

onRedis("health", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
  });
  afterAll(() => fixture.close());

  test("reports the run, its start, and whether the run may have lost data", async () => {
    const [run, uptime, role, replication, ...rest] = await standingOf(fixture.connection);
    const info = await fixture.redis.info();
    expect(info).toContain(`run_id:${String(run)}\r\n`);
    expect(info).toContain(`master_replid:${String(replication)}\r\n`);
    expect(Number.isInteger(uptime)).toBe(true);
    expect([role, ...rest]).toEqual(["master", 0, "noeviction", 0, 0, 0]);
  });

  test("reports changed settings, and the number of flushes", async () => {
    await fixture.redis.config("SET", "appendonly", "yes");
    await waitUntil(
      async () => (await standingOf(fixture.connection))[4] === 1,
      "the first rewrite of the file is finished",
    );
    await fixture.redis.config("SET", "maxmemory", "200mb");
    await fixture.redis.config("SET", "maxmemory-policy", "volatile-lru");
    await fixture.redis.flushall();
    await fixture.redis.flushdb();
    await fixture.redis.script("FLUSH");
    const [, , role, , ...rest] = await standingOf(fixture.connection);
    expect([role, ...rest]).toEqual(["master", 1, "volatile-lru", 200 * 1024 * 1024, 2, 1]);
    await fixture.redis.config("SET", "appendonly", "no");
    await fixture.redis.config("SET", "maxmemory", "0");
  });

  test("of a replica reports its role, and the replica grants nothing, like a fake one", async () => {
    const server = new FakeRedis({ clock: systemClock, role: "slave" });
    const [keys, us] = [fixture.lock(), requester(1)];
    await fixture.grant(keys, us);
    server.set(keys[0], `${us.token} 1 1`, 30_000);
    await fixture.redis.replicaof("127.0.0.1", "1");
    const fakes = server.connect();
    const seen = [];
    for (const connection of [fixture.connection, fakes]) {
      const told: string[] = [];
      for (const [lock, operation] of [
        [fixture.lock(), acquireOf(us)],
        [keys, ["release", us.token, "", "1"]],
        [keys, acquireOf(requester(2), { wait: "1" })],
        [keys, acquireOf(requester(2))],
        [keys, ["verify", us.token]],
        [keys, ["inspect"]],
        [keys, ["extend", requester(2).token, "1000", "", ""]],
      ] as const) {
        const both = [[lock, operation] as const, [keys, ["verify", us.token]] as const];
        for (const batch of [both.slice(0, 1), both]) {
          told.push(await fixture.batch(batch, { connection }).then(String, String));
        }
      }
      seen.push([(await standingOf(connection))[2], told, await roleIn(connection)]);
    }
    expect(seen[1]).toEqual(seen[0]);
    const writes = "ReplyError: READONLY You can't write against a read only replica.";
    const reads = "ReplyError: READONLY A replica does not serve locks";
    const told = [...Array.from({ length: 6 }, () => writes), ...Array.from({ length: 8 }, () => reads)];
    expect(seen[0]).toEqual(["slave", told, "slave"]);
    await fixture.redis.call("REPLICAOF", "NO", "ONE");
  });

  async function roleIn(connection: Connection): Promise<unknown> {
    return ((await connection.run(handshakeScript, ...handshake)) as unknown[])[4];
  }
});

onRedis("a plain command", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
  });
  afterAll(() => fixture.close());

  test("of the fake Redis has the replies and refusals of a real server", async () => {
    const server = new FakeRedis({ clock: systemClock });
    for (const fsync of ["everysec", "always"] as const) {
      await fixture.redis.config("SET", "appendfsync", fsync);
      server.setDurable(fsync === "always");
      for (const args of [["appendfsync"], ["APPENDFSYNC"], ["no-such-thing"]]) {
        const ask = (connection: Connection) => connection.command("CONFIG", ["GET", ...args]);
        expect(await ask(server.connect())).toEqual(await ask(fixture.connection));
      }
      const settings = async (connection: Connection): Promise<Set<unknown>> =>
        new Set((await connection.command("CONFIG", ["GET", "*appendfsync*"])) as unknown[]);
      expect(await settings(server.connect())).toEqual(await settings(fixture.connection));
    }
    await fixture.redis.call("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-config");
    const refused = detectConnection(fixture.server.client({ username: "app", password: "any" }));
    server.refuseConfig(true);
    expect(await failure(server.connect(), "CONFIG", "GET", "appendfsync")).toBe(
      await failure(refused, "CONFIG", "GET", "appendfsync"),
    );
    for (const args of [[], ["a", "b c"]]) {
      expect(await failure(server.connect(), "nosuch", ...args)).toBe(
        await failure(fixture.connection, "nosuch", ...args),
      );
    }
  });

  async function failure(connection: Connection, name: string, ...args: string[]): Promise<string> {
    return connection.command(name, args).then(
      (answer) => `no failure: ${String(answer)}`,
      (error: unknown) => (error as Error).message,
    );
  }
});

describe("health of the fake Redis", () => {
  test("reports the settings of its creation, and their changes", async () => {
    const server = new FakeRedis({
      clock: systemClock,
      durable: true,
      upForMs: 70_000,
      maxmemory: 1_000,
      maxmemoryPolicy: "allkeys-lru",
    });
    const connection = server.connect();
    const [run, uptime, role, replication, ...rest] = await standingOf(connection);
    expect([uptime, role, ...rest]).toEqual([70, "master", 1, "allkeys-lru", 1_000, 0, 0]);
    expect([run, replication]).toEqual([server.runId, expect.stringMatching(runId)]);
    server.flushAll();
    server.setDurable(false);
    server.setRole("slave");
    server.setRole("slave");
    const [sameRun, , slave, other, aof, , , flushes] = await standingOf(connection);
    expect([sameRun, slave, aof, flushes]).toEqual([run, "slave", 0, 1]);
    expect(other).toMatch(runId);
    expect(other).not.toBe(replication);
  });

  test("after a restart reports another run that is up since now, without a flush", async () => {
    for (const keepData of [true, false]) {
      const server = new FakeRedis({ clock: systemClock, upForMs: 70_000 });
      const connection = server.connect();
      const before = await standingOf(connection);
      server.set("k", "v");
      server.restart({ keepData });
      const after = await standingOf(connection);
      expect(after[0]).not.toBe(before[0]);
      expect(after[3]).not.toBe(before[3]);
      expect([before[1], after[1], after[7]]).toEqual([70, 0, 0]);
      expect(server.get("k")).toBe(keepData ? "v" : null);
    }
  });

  test("reports the role, like the handshake", async () => {
    const server = new FakeRedis({ clock: systemClock, name: "node 3" });
    const connection = server.connect();
    expect(connection.name).toBe("node 3");
    expect(await connection.run(handshakeScript, ...handshake)).toContain("master");
    server.setRole("slave");
    expect(await connection.run(handshakeScript, ...handshake)).toContain("slave");
  });
});

async function standingOf(connection: Connection): Promise<ScriptReply> {
  return (await connection.run(healthScript, [], [])) as ScriptReply;
}
