import { createLocks, type Driver, type Lease, type Locks } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { pythonRedisLock, redisson, redissonFenced, shedLock, spring } from "holdfast/redis/layouts";
import {
  rejection,
  startCluster,
  startRedis,
  waitUntil,
  type RedisCluster,
  type RedisServer,
} from "@holdfast/test-kit";
import { Cluster, type Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { renewals } from "../support/fault-fixture.ts";
import { onEachRedis, onRedis } from "../support/servers.ts";

/** How a process opens its driver, on the servers of one test. */
interface Setup {
  readonly name: string;
  readonly kinds?: readonly ("semaphore" | "read-write")[];
  /** Whether an operation by an operator leaves a record. */
  readonly audits?: boolean;
  open(servers: readonly RedisServer[]): Driver;
}

const ttlMs = 1_500;
const all = ["semaphore", "read-write"] as const;

const layouts = [
  [redisson, undefined, ["read-write"]],
  [redissonFenced, "fenced:", []],
  [spring, "registry:", []],
  [pythonRedisLock, undefined, []],
  [shedLock, undefined, []],
] as const;

const oneServer: Setup = {
  name: "one server",
  kinds: all,
  audits: true,
  open: ([server]) => redis(clientOf(server)),
};

const onReplicas: Setup = {
  name: "with minReplicas",
  kinds: all,
  audits: true,
  open: ([primary]) => redis(clientOf(primary), { minReplicas: 1 }),
};

const quorum: Setup = {
  name: "a quorum",
  kinds: ["read-write"],
  audits: true,
  open: (nodes) => redlock(nodes.map(clientOf), { restartGuard: "off" }),
};

/** All on one server, at once. */
const ofLayouts: readonly Setup[] = layouts.map(([layout, prefix, kinds]) => ({
  name: layout.name,
  kinds,
  open: ([server]) => redis(clientOf(server), { layout, prefix }),
}));

let clients: { disconnect(): void }[] = [];
let opened: Locks[] = [];

function clientOf(server: RedisServer | undefined): Redis {
  const client = (server as RedisServer).client();
  client.on("error", () => undefined);
  return client;
}

/** Whether a server that has reached `maxmemory` refuses commands that may need memory. */
async function setFull(servers: readonly RedisServer[], isFull: boolean): Promise<void> {
  await Promise.all(servers.map((server) => server.client().config("SET", "maxmemory", isFull ? "1" : "0")));
}

/** All leases have been renewed twice since this call, and none is lost. */
async function expectRenewals(leases: readonly Lease[]): Promise<void> {
  const seen = leases.map(({ key }) => renewals(key));
  await waitUntil(() => seen.every((outcomes) => outcomes.length >= 2), "each lease is renewed twice");
  expect(seen.flat().filter((outcome) => outcome !== "extended")).toEqual([]);
  for (const lease of leases) {
    lease.throwIfLost();
  }
}

/** A setup as its tests use it. */
interface Side extends Required<Pick<Setup, "kinds" | "audits">> {
  /** Begins each key of the setup. */
  readonly name: string;
  /** Opens the driver of another process. */
  readonly process: () => Locks;
}

/** The tests start their servers once. Of several setups, each step is done by all before the next. */
function tests(setups: readonly Setup[], start: () => Promise<RedisServer[]>): void {
  let servers: RedisServer[];
  const sides = setups.map(({ name, kinds = [], audits = false, open }): Side => {
    const process = (): Locks => {
      const locks = createLocks(open(servers), { handover: { maxMs: 60_000 } });
      opened.push(locks);
      return locks;
    };
    return { name, kinds, audits, process };
  });
  const each = <T>(step: (side: Side) => Promise<T>): Promise<T[]> => Promise.all(sides.map(step));

  beforeAll(async () => {
    servers = await start();
  });

  afterEach(async () => {
    await setFull(servers, false);
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    for (const client of clients) {
      client.disconnect();
    }
    clients = [];
  });

  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  test("renews every lease, also one that was handed over in memory", async () => {
    const held = await each(async ({ name, kinds, process }) => {
      const locks = process();
      const lone = await locks.acquire(`${name}:lone`, { ttlMs, labels: { run: "1" } });
      const first = await locks.acquire(`${name}:contended`, { ttlMs });
      const [second, third, fourth] = ["second", "third", "fourth"].map((reason) =>
        locks.acquire(`${name}:contended`, { ttlMs, waitMs: 90_000, reason }),
      ) as [Promise<Lease>, Promise<Lease>, Promise<Lease>];
      const refused = rejection(fourth);
      await first.release();
      const contended = await second; // its grant has numbers for the other callers, which wait in memory
      const leases = [lone, contended];
      if (kinds.includes("semaphore")) {
        const permits = locks.semaphore(`${name}:semaphore`, { limit: 3 });
        leases.push(await permits.acquire({ ttlMs, reason: "permit" }));
      }
      if (kinds.includes("read-write")) {
        leases.push(await locks.readWrite(`${name}:read`).read.acquire({ ttlMs, reason: "reader" }));
        leases.push(await locks.readWrite(`${name}:written`).write.acquire({ ttlMs, reason: "writer" }));
      }
      return { locks, leases, contended, third, refused };
    });
    await setFull(servers, true);
    await expectRenewals(held.flatMap(({ leases }) => leases));
    const handedOver = held.map(async ({ contended, third }) => {
      await contended.release();
      return third;
    });
    await expectRenewals(await Promise.all(handedOver));
    for (const { locks, refused } of held) {
      await locks.close();
      await refused;
    }
  });

  test("lets a new process look, take over and end leases, and refuses its acquires with the reason", async () => {
    const held = await each(async (side) => {
      const holder = side.process();
      const keys = [`${side.name}:broken`, `${side.name}:kept`] as const;
      const kept = await holder.acquire(keys[1], { ttlMs: 30_000, renew: false, reason: "work" });
      const broken = await holder.acquire(keys[0], { ttlMs: 60_000, renew: false });
      return { ...side, keys, kept, broken, serialized: kept.transfer() };
    });
    await setFull(servers, true);
    const operated = held.map(async ({ name, audits, process, keys, kept, broken, serialized }) => {
      const operator = process();
      expect(await operator.inspect(keys[1])).toMatchObject({
        holders: [{ reason: "work", fencingToken: kept.fencingToken }],
      });
      const { locks } = await operator.admin.list({ prefix: `${name}:` });
      expect(locks.map(({ key }) => key).sort()).toEqual(keys);
      expect(await operator.checkFence(keys[1], kept.fencingToken)).toBe("current");
      const { fencingToken } = broken;
      expect(await operator.admin.breakLock(keys[0], { fencingToken, reason: "stuck" })).toBe(true);
      await waitUntil(() => broken.signal.aborted, "the holder learns of the break");
      expect(broken.signal.reason).toMatchObject({ reason: "broken" });
      if (audits) {
        expect((await operator.admin.audit()).records).toMatchObject([{ key: keys[0], reason: "stuck" }]);
      }
      const adopted = await operator.adopt(serialized);
      await adopted.extend(60_000);
      expect(adopted.remainingMs()).toBeGreaterThan(50_000);
      expect(await adopted.release()).toBe(true);
      const { error } = await rejection(operator.acquire(`${name}:new`, { waitMs: 0 }));
      expect(String(error)).toMatch(/OOM command not allowed/);
      expect(error).toMatchObject({ retryable: true });
    });
    await Promise.all(operated);
  });

  test("gives a released lock to the process that waits in its queue", async () => {
    const held = await each(async ({ name, process }) => {
      const [holder, waiter] = [process(), process()];
      const lease = await holder.acquire(`${name}:k`, { ttlMs: 60_000 });
      const waiting = waiter.acquire(`${name}:k`, { ttlMs, waitMs: 90_000 });
      const isQueued = async (): Promise<boolean> => (await holder.inspect(`${name}:k`)).waiterCount === 1;
      await waitUntil(isQueued, "the waiter is queued");
      return { lease, waiting };
    });
    await setFull(servers, true);
    const next = held.map(async ({ lease, waiting }) => {
      expect(await lease.release()).toBe(true);
      return waiting;
    });
    const leases = await Promise.all(next);
    await expectRenewals(leases);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => true));
  });
}

const args = ["--repl-diskless-sync-delay", "0"];

async function startWithReplica(): Promise<RedisServer[]> {
  const first = await startRedis({ args });
  const replica = await startRedis({ args: ["--replicaof", `127.0.0.1 ${first.port}`] });
  await waitUntil(async () => (await first.client().wait(1, 100)) === 1, "the replica follows");
  return [first, replica];
}

// Which commands a full server refuses is a rule of the server.
onEachRedis("With full memory, one server", (program) => {
  tests([oneServer], async () => [await startRedis({ program })]);
});

onRedis("With full memory", () => {
  describe("one server with minReplicas", () => tests([onReplicas], startWithReplica));
  describe("a quorum", () => tests([quorum], () => Promise.all([startRedis(), startRedis(), startRedis()])));
  describe("the layouts of other libraries", () => tests(ofLayouts, async () => [await startRedis()]));
});

onRedis("With full memory, a cluster", () => {
  let cluster: RedisCluster;
  const setup: Setup = {
    name: "a cluster",
    kinds: all,
    audits: true,
    open: (servers) => {
      const client = new Cluster(servers.map(({ port }) => ({ host: "127.0.0.1", port })));
      client.on("error", () => undefined);
      clients.push(client);
      return redis(client);
    },
  };
  tests([setup], async () => {
    cluster = await startCluster({ primaries: 3, replicas: 0 });
    return [...cluster.servers];
  });
});
