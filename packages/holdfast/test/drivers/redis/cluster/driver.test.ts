import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, isLockError, type BreakResult } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { limitMs, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { systemClock } from "../../../../src/runtime/clock.ts";
import { systemRandom } from "../../../../src/runtime/random.ts";
import { slotOf, tagOf } from "../../../../src/drivers/redis/cluster/hash-slot.ts";
import { counterKey } from "../../../../src/drivers/redis/protocol/keys.ts";
import { singleServerBatches } from "../../../../src/drivers/redis/single/server-directory.ts";
import { RedisServer as ServerClient } from "../../../../src/drivers/redis/server/server.ts";
import { resolveRedis } from "../../../../src/drivers/redis/options.ts";
import { ServerClock } from "../../../../src/drivers/redis/server/server-clock.ts";
import { ClusterFixture, keysOnDifferentPrimaries, slotOfLock } from "../../../support/cluster-fixture.ts";
import { onRedis } from "../../../support/servers.ts";

const slotCount = 16_384;

onRedis("particulars of a cluster", () => {
  let fixture: ClusterFixture;

  beforeAll(async () => {
    fixture = await ClusterFixture.open({ primaries: 3, replicas: 1 });
  });

  afterAll(async () => {
    await fixture[Symbol.asyncDispose]();
  });

  test("a key has the same slot as on the server", async () => {
    const probe = fixture.cluster.servers[0]?.client();
    const keys = ["", "a", "123456789", "{tag}b", "a{b}c{d}", "{}a", "{a", "a}b", "ключ", "{ключ}x", "{{a}}"];
    for (const key of keys) {
      expect(slotOf(key), key).toBe(await probe?.call("CLUSTER", "KEYSLOT", key));
    }
  });

  test("each slot has a short tag", () => {
    const tags = Array.from({ length: slotCount }, (_, slot) => tagOf(slot));
    expect(tags.map((tag) => slotOf(`holdfast:grants:{${tag}}x`))).toEqual(tags.map((_, slot) => slot));
    expect(Math.max(...tags.map(({ length }) => length))).toBeLessThanOrEqual(4);
    expect(tags.join("")).toMatch(/^[\da-z]+$/);
  });

  test("a list goes through all primaries, page by page", async () => {
    const locks = fixture.locks();
    const keys = keysOnDifferentPrimaries(3, "listed", 20).flat();
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    const found: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await locks.admin.list({
        prefix: "listed",
        limit: 7,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(...page.locks.map(({ key }) => key));
      cursor = page.cursor ?? undefined;
      pages += 1;
    } while (cursor !== undefined);
    expect(found.sort()).toEqual(keys.sort());
    expect(pages).toBeGreaterThan(3);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("the audit has the breaks of all slots in order, and old records are removed in all slots", async () => {
    const random = { ...systemRandom, nextFloat: () => 0 };
    const [locks, operator] = [fixture.locks(), fixture.locks({ random }, { owner: "ada" })];
    const old = Array.from({ length: 600 }, (_, i) => [String(i), `${i} 1 broken 1 {"by":"old"}`]).flat();
    const keys = keysOnDifferentPrimaries(3, "audited", 2).flat();
    const [client, auditOf] = [
      fixture.client(),
      (key: string) => `holdfast:audit:{${tagOf(slotOfLock(key))}}:lock:`,
    ];
    await Promise.all(keys.slice(0, 2).map((key) => client.zadd(auditOf(key), ...old)));
    const ids: (string | undefined)[] = [];
    for (const key of keys) {
      const { fencingToken } = await locks.acquire(key);
      const onResult = ({ auditId }: BreakResult): unknown => ids.push(auditId);
      expect(await operator.admin.breakLock(key, { fencingToken, reason: "test", onResult })).toBe(true);
    }
    const { records } = await locks.admin.audit({ limit: keys.length });
    expect(records.map(({ id, key, by }) => [id, key, by])).toEqual(
      keys.map((key, index) => [ids[index], key, "ada"]).reverse(),
    );
    const counts = await Promise.all(keys.map((key) => client.zcard(auditOf(key))));
    expect(counts.reduce((a, b) => a + b)).toBe(1_000);
  });

  test("a cursor that no page has returned is refused", async () => {
    const locks = fixture.locks();
    for (const cursor of ["zzz", "7", "127.0.0.1:1|", "127.0.0.1:1|18446744073709551616"]) {
      await expect(locks.admin.list({ cursor }), cursor).rejects.toThrow(RangeError);
    }
  });

  test("holders and waiters are shown by name, whichever node has their client's record", async () => {
    const [here, there] = [fixture.locks({}, { owner: "one" }), fixture.locks({}, { owner: "another" })];
    const keys = keysOnDifferentPrimaries(3, "named", 2).flat();
    for (const key of keys) {
      const lease = await here.acquire(key);
      const waiter = there.acquire(key);
      await expect
        .poll(async () => (await here.inspect(key)).waiters.map(({ owner }) => owner))
        .toEqual(["another"]);
      const state = await here.inspect(key);
      expect(state.holders.map(({ owner }) => owner)).toEqual(["one"]);
      expect(fixture.cluster.ports.map((port) => `127.0.0.1:${port}`)).toContain(state.nodes[0]?.node);
      await lease.release();
      await (await waiter).release();
    }
  });

  test("nodes reports every primary, its slots, its replicas and the state of the cluster", async () => {
    const locks = fixture.locks();
    let nodes = await locks.admin.nodes();
    const toldReplicas = (): readonly string[] | undefined =>
      nodes.find(({ node }) => node.endsWith(`:${fixture.cluster.ports[0]}`))?.cluster?.replicas;
    // Each node of a cluster reports a replica only after news of the replication has reached that node.
    const reportsReplica = async (): Promise<boolean> => {
      nodes = await locks.admin.nodes();
      return toldReplicas()?.length === 1;
    };
    await waitUntil(reportsReplica, "the first primary's replica is reported", limitMs(20_000));
    expect(nodes.map(({ node }) => node).sort()).toEqual(
      fixture.cluster.ports
        .slice(0, 3)
        .map((port) => `127.0.0.1:${port}`)
        .sort(),
    );
    expect(nodes.map(({ role, reachable }) => [role, reachable])).toEqual(nodes.map(() => ["master", true]));
    expect(nodes.map(({ cluster }) => cluster?.state)).toEqual(["ok", "ok", "ok"]);
    expect(nodes.reduce((sum, { cluster }) => sum + (cluster?.slots ?? 0), 0)).toBe(slotCount);
    expect(toldReplicas()).toEqual([`127.0.0.1:${fixture.cluster.ports[3]}`]);
    const following = nodes.flatMap(({ replication }) => replication?.replicas ?? []);
    expect(following.map(({ isOnline }) => isOnline)).toEqual([true]);
  });

  test("several keys are acquired in one step if they share a slot, and one by one otherwise", async () => {
    const locks = fixture.locks();
    const [[one = "", two = ""] = []] = keysOnDifferentPrimaries(3, "several", 2);
    for (const keys of [
      ["{t}:a", "{t}:b"],
      [one, two],
    ]) {
      const lease = await locks.all(keys).acquire();
      expect([...lease.keys].sort()).toEqual([...keys].sort());
      expect(await locks.tryAcquire(keys[1] as string)).toBeNull();
      expect(await lease.release()).toBe(true);
    }
  });

  test("keys whose braces put their queue into another slot are refused", async () => {
    const locks = fixture.locks();
    for (const key of ["a}b", "{}a", "}"]) {
      await expect(locks.tryAcquire(key)).rejects.toThrow(/key.*braces/);
    }
    for (const key of ["{a", "a{b", "{a}b", "a{b}c{d}"]) {
      const lease = await locks.tryAcquire(key);
      expect(await lease?.release()).toBe(true);
    }
  });

  test("a quorum of clusters is refused", () => {
    const clients = [fixture.client(), fixture.client(), fixture.client()];
    let refused: unknown;
    try {
      redlock(clients as never);
    } catch (error) {
      refused = error;
    }
    expect(isLockError(refused, "unsupported")).toBe(true);
  });

  test("an uncontended lock makes no subscription in its slot", async () => {
    const locks = fixture.locks();
    const keys = keysOnDifferentPrimaries(3, "alone", 10).flat();
    const channels = (): Promise<unknown[]> =>
      Promise.all(
        fixture.cluster.servers.slice(0, 3).map((server) => server.client().call("PUBSUB", "SHARDCHANNELS")),
      );
    const before = await channels();
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    expect(await channels()).toEqual(before);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("a client that reads from replicas works as well", async () => {
    const nodes = fixture.cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
    const client = new Cluster(nodes, { scaleReads: "slave", redisOptions: { keyPrefix: "r:" } });
    const locks = createLocks(redis(client));
    const [keys = []] = keysOnDifferentPrimaries(3, "replica", 5);
    for (const key of keys) {
      const lease = await locks.acquire(key);
      expect((await locks.inspect(key)).holders).toHaveLength(1);
      expect(await fixture.client().exists(`r:lock:${key}`)).toBe(1);
      expect(await lease.release()).toBe(true);
    }
    await locks.close();
    client.disconnect();
  });

  test("the prefix of node-redis 6 precedes the keys", async () => {
    const rootNodes = fixture.cluster.ports.map((port) => ({ socket: { host: "127.0.0.1", port } }));
    const client = createCluster({ rootNodes, keyPrefix: "r:" });
    await client.connect();
    const locks = createLocks(redis(client));
    const lease = await locks.acquire("prefixed");
    expect(await fixture.client().exists("r:lock:prefixed")).toBe(1);
    expect(await client.exists("lock:prefixed")).toBe(1);
    expect(await lease.release()).toBe(true);
    await locks.close();
    client.destroy();
  });

  test("a client that is not connected, or was closed, is an unreachable engine", async () => {
    const [port] = fixture.cluster.ports;
    const ioredis = new Cluster([{ host: "127.0.0.1", port: port as number }]);
    ioredis.disconnect();
    const nodeRedis = createCluster({ rootNodes: [{ socket: { host: "127.0.0.1", port: port as number } }] });
    for (const client of [ioredis, nodeRedis]) {
      const locks = createLocks(redis(client, { commandTimeoutMs: 300 }));
      const error = await locks.tryAcquire("key").catch((reason: unknown) => reason);
      expect(isLockError(error, "engine-unavailable")).toBe(true);
      await locks.close();
    }
  });
});

test("a cluster older than Redis 7 is unsupported", async () => {
  const clock = systemClock;
  const time = new ServerClock(clock);
  const node = new ServerClient({
    ...resolveRedis({ clock }),
    connection: new FakeRedis({ clock, version: "6.2.14" }).connect(),
    clientId: "c".repeat(32),
    batches: singleServerBatches(counterKey(tagOf(1)), 100, 2_000),
    listener: {
      granted: () => undefined,
      ended: () => undefined,
      cloned: () => undefined,
      notificationStatusChanged: () => undefined,
      recovered: () => undefined,
    },
    slot: { tag: tagOf(1), ownClock: () => time, bestClock: () => time, clients: async () => [] },
  });
  const refused = await node.handshake().catch((error: unknown) => error);
  expect(isLockError(refused, "unsupported")).toBe(true);
  expect(String(refused)).toContain("6.2.14");
  node.close();
});

onRedis("a cluster whose user may not subscribe", () => {
  test("waits by polling, and reports the missing notifications", async () => {
    await using fixture = await ClusterFixture.open({ primaries: 3, replicas: 0 });
    for (const server of fixture.cluster.servers) {
      await server
        .client()
        .call("ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-ssubscribe");
    }
    const nodes = fixture.cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
    const redisOptions = { username: "mute", password: "secret" };
    const client = new Cluster(nodes, { redisOptions });
    const locks = createLocks(redis(client, { commandTimeoutMs: 500 }));
    const holder = fixture.locks();
    const lease = await holder.acquire("mute");
    const waiter = locks.acquire("mute", { waitMs: 30_000 });
    await expect
      .poll(async () => (await locks.admin.nodes()).map(({ notifications }) => notifications), {
        timeout: limitMs(15_000),
      })
      .toContain("unavailable");
    expect(await lease.release()).toBe(true);
    expect(await (await waiter).release()).toBe(true);
    await locks.close();
    client.disconnect();
  });
});

onRedis("a cluster with a node that is dead from the beginning", () => {
  test("serves the locks of its other nodes", async () => {
    await using fixture = await ClusterFixture.open({
      primaries: 3,
      replicas: 0,
      args: ["--cluster-require-full-coverage", "no"],
    });
    const dead = fixture.cluster.servers[2] as RedisServer;
    const [one = [], two = []] = keysOnDifferentPrimaries(3, "living", 2);
    const all = await fixture.locksPerLibrary();
    dead.freeze();
    fixture.onCleanup(() => {
      dead.thaw();
    });
    for (const [name, locks] of all) {
      for (const key of [...one, ...two]) {
        const lease = await locks.acquire(key);
        expect(await lease.release(), name).toBe(true);
      }
    }
  });
});
