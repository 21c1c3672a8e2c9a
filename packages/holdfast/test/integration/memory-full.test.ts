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
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { renewals } from "../support/fault-fixture.ts";
import { onEachRedis, onRedis } from "../support/servers.ts";

/** How a process opens its driver, on the servers of one test. */
interface Setup {
  readonly name: string;
  /** The number of servers. The second of two is a replica. */
  readonly servers?: number;
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

const setups: readonly Setup[] = [
  { name: "one server", kinds: all, audits: true, open: ([server]) => redis(clientOf(server)) },
  {
    name: "one server with minReplicas",
    servers: 2,
    kinds: all,
    audits: true,
    open: ([primary]) => redis(clientOf(primary), { minReplicas: 1 }),
  },
  {
    name: "a quorum",
    servers: 3,
    kinds: ["read-write"],
    audits: true,
    open: (nodes) => redlock(nodes.map(clientOf), { restartGuard: "off" }),
  },
  ...layouts.map(([layout, prefix, kinds]) => ({
    name: `the layout ${layout.name}`,
    kinds,
    open: ([server]: readonly RedisServer[]) => redis(clientOf(server), { layout, prefix }),
  })),
];

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

function tests(
  { servers: count = 1, kinds = [], audits = false, open }: Setup,
  start: () => Promise<RedisServer[]>,
): void {
  let servers: RedisServer[];
  const process = (): Locks => {
    const locks = createLocks(open(servers), { handover: { maxMs: 60_000 } });
    opened.push(locks);
    return locks;
  };

  beforeEach(async () => {
    servers = await start();
    expect(servers).toHaveLength(count);
  });

  afterEach(async () => {
    await setFull(servers, false);
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    for (const client of clients) {
      client.disconnect();
    }
    clients = [];
    await Promise.all(servers.map((server) => server.stop()));
  });

  test("renews every lease, also one that was handed over in memory", async () => {
    const locks = process();
    const lone = await locks.acquire("lone", { ttlMs, labels: { run: "1" } });
    const first = await locks.acquire("contended", { ttlMs });
    const [second, third, fourth] = ["second", "third", "fourth"].map((reason) =>
      locks.acquire("contended", { ttlMs, waitMs: 90_000, reason }),
    ) as [Promise<Lease>, Promise<Lease>, Promise<Lease>];
    const refused = rejection(fourth);
    await first.release();
    const contended = await second; // its grant has numbers for the other callers, which wait in memory
    const leases = [lone, contended];
    if (kinds.includes("semaphore")) {
      leases.push(await locks.semaphore("semaphore", { limit: 3 }).acquire({ ttlMs, reason: "permit" }));
    }
    if (kinds.includes("read-write")) {
      leases.push(await locks.readWrite("read").read.acquire({ ttlMs, reason: "reader" }));
      leases.push(await locks.readWrite("written").write.acquire({ ttlMs, reason: "writer" }));
    }
    await setFull(servers, true);
    await expectRenewals(leases);
    await contended.release();
    const handedOver = await third;
    await expectRenewals([handedOver]);
    await locks.close();
    await refused;
  });

  test("lets a new process look, take over and end leases, and refuses its acquires with the reason", async () => {
    const holder = process();
    const kept = await holder.acquire("kept", { ttlMs: 30_000, renew: false, reason: "work" });
    const broken = await holder.acquire("broken", { ttlMs: 60_000, renew: false });
    const serialized = kept.transfer();
    await setFull(servers, true);
    const operator = process();
    expect(await operator.inspect("kept")).toMatchObject({
      holders: [{ reason: "work", fencingToken: kept.fencingToken }],
    });
    expect((await operator.admin.list()).locks.map(({ key }) => key).sort()).toEqual(["broken", "kept"]);
    expect(await operator.checkFence("kept", kept.fencingToken)).toBe("current");
    expect(
      await operator.admin.breakLock("broken", { fencingToken: broken.fencingToken, reason: "stuck" }),
    ).toBe(true);
    await waitUntil(() => broken.signal.aborted, "the holder learns of the break");
    expect(broken.signal.reason).toMatchObject({ reason: "broken" });
    if (audits) {
      expect((await operator.admin.audit()).records).toMatchObject([{ key: "broken", reason: "stuck" }]);
    }
    const adopted = await operator.adopt(serialized);
    await adopted.extend(60_000);
    expect(adopted.remainingMs()).toBeGreaterThan(50_000);
    expect(await adopted.release()).toBe(true);
    const { error } = await rejection(operator.acquire("new", { waitMs: 0 }));
    expect(String(error)).toMatch(/OOM command not allowed/);
    expect(error).toMatchObject({ retryable: true });
  });

  test("gives a released lock to the process that waits in its queue", async () => {
    const [holder, waiter] = [process(), process()];
    const lease = await holder.acquire("k", { ttlMs: 60_000 });
    let next: Lease | undefined;
    let failure: unknown;
    void waiter.acquire("k", { ttlMs, waitMs: 90_000 }).then(
      (granted) => (next = granted),
      (error: unknown) => (failure = error),
    );
    await waitUntil(async () => (await holder.inspect("k")).waiterCount === 1, "the waiter is queued");
    await setFull(servers, true);
    expect(await lease.release()).toBe(true);
    await waitUntil(() => next !== undefined || failure !== undefined, "the waiter has the lock");
    expect(failure).toBeUndefined();
    await expectRenewals([next as Lease]);
    expect(await (next as Lease).release()).toBe(true);
  });
}

/** The first server may have a replica, or be a node beside others. */
async function start({ servers: count = 1 }: Setup, program?: string): Promise<RedisServer[]> {
  const options = program === undefined ? {} : { program };
  const first = await startRedis({ ...options, args: ["--repl-diskless-sync-delay", "0"] });
  const args = count === 2 ? ["--replicaof", `127.0.0.1 ${first.port}`] : [];
  const others = Array.from({ length: count - 1 }, () => startRedis({ ...options, args }));
  const servers = [first, ...(await Promise.all(others))];
  if (count === 2) {
    await waitUntil(async () => (await first.client().wait(1, 100)) === 1, "the replica follows");
  }
  return servers;
}

// Which commands a full server refuses is a rule of the server.
onEachRedis("With full memory, one server", (program) => {
  const [setup] = setups as [Setup];
  tests(setup, () => start(setup, program));
});

onRedis("With full memory", () => {
  describe.each(setups.slice(1))("$name", (setup) => {
    tests(setup, () => start(setup));
  });
});

onRedis("With full memory, a cluster", () => {
  let cluster: RedisCluster;
  const setup: Setup = {
    name: "a cluster",
    servers: 3,
    kinds: all,
    audits: true,
    open: (servers) => {
      const client = new Cluster(servers.map(({ port }) => ({ host: "127.0.0.1", port })));
      client.on("error", () => undefined);
      clients.push(client);
      return redis(client);
    },
  };
  tests(setup, async () => {
    cluster = await startCluster({ primaries: 3, replicas: 0 });
    return [...cluster.servers];
  });
});
