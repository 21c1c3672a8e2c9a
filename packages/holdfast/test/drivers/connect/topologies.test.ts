import { readFile } from "node:fs/promises";

import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  standaloneNodeArgs,
  makeCertificates,
  rejection,
  startCluster,
  startProxy,
  startRedis,
  startSentinels,
  stablePort,
  waitUntil,
  type Certificates,
  type RedisCluster,
  type RedisServer,
  type Sentinels,
} from "@holdfast/test-kit";

import { keysOnDifferentPrimaries } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";

const libraries = ["ioredis", "node-redis"] as const;
const page = await readFile(new URL("../../../../../docs/security.md", import.meta.url), "utf8");
/** The least rights of the documentation, for a server and for a node of a cluster. */
const own = (/^ACL SETUSER holdfast .*$/m.exec(page) as RegExpExecArray)[0].split(" ");
const more = rightsIn(/^\| the server is a node of a Cluster .*$/m);
const forReplicas = rightsIn(/^\| you use `minReplicas` .*$/m);

function rightsIn(row: RegExp): string[] {
  const [line] = row.exec(page) as RegExpExecArray;
  return Array.from(line.matchAll(/\+[a-z|\\]+/g), ([right]) => right.replaceAll("\\", ""));
}

onRedis("connect to a cluster", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    expect(more.length).toBeGreaterThan(3);
    cluster = await startCluster({});
    for (const server of cluster.servers) {
      await server.client().call("ACL", [...own.slice(1), ...more]);
    }
  });

  afterAll(async () => {
    await cluster.stop();
  });

  test.each(libraries)("by %s: locks on every shard, with the least rights", async (client) => {
    const hosts = cluster.servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
    await worksBy(
      `redis+cluster://holdfast:secret@${hosts}?client=${client}`,
      keysOnDifferentPrimaries(3, "key", 1).flat(),
    );
    for (const server of cluster.servers) {
      expect(await server.client().call("ACL", "LOG")).toEqual([]);
    }
  });
});

onRedis("connect to a cluster with TLS", () => {
  test.each(libraries)("by %s: verifies the nodes, and rejects nodes of another signer", async (client) => {
    await using certificates = await makeCertificates();
    const port = await stablePort();
    const server = await startRedis({
      args: [...(await standaloneNodeArgs()), "--tls-cluster", "yes", ...certificates.serverArgs(port)],
    });
    try {
      const probe = server.client();
      await probe.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
      await waitUntil(
        async () => String(await probe.cluster("INFO")).includes("cluster_state:ok"),
        "the cluster is up",
      );
      const url = `rediss+cluster://127.0.0.1:${port}?client=${client}`;
      await worksBy(`${url}&tlsCaFile=${encodeURIComponent(certificates.caFile)}`, ["key"]);
      const locks = createLocks(await connect(url, { commandTimeoutMs: 300 }));
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      await locks.close();
    } finally {
      await server.stop();
    }
  });
});

onRedis("connect by Sentinel with TLS, where the sentinels have users of their own", () => {
  let certificates: Certificates;
  let primary: RedisServer;
  let sentinel: RedisServer;
  let sentinelPort: number;
  let url: string;

  beforeAll(async () => {
    certificates = await makeCertificates();
    const port = await stablePort();
    sentinelPort = await stablePort();
    primary = await startRedis({ args: certificates.serverArgs(port) });
    sentinel = await startRedis({
      sentinel: `sentinel monitor lab 127.0.0.1 ${port} 1`,
      args: ["--tls-replication", "yes", ...certificates.serverArgs(sentinelPort)],
    });
    await primary.client().call("ACL", "SETUSER", "app", "on", ">p@ss", "~*", "&*", "+@all");
    await primary.client().call("ACL", "SETUSER", "default", "resetpass");
    await sentinel.client().call("ACL", "SETUSER", "watcher", "on", ">w@tch", "&*", "+@all");
    await sentinel.client().call("ACL", "SETUSER", "default", "resetpass");
    url = `rediss+sentinel://app:p%40ss@127.0.0.1:${sentinelPort}/lab`;
  });

  afterAll(async () => {
    await sentinel.stop();
    await primary.stop();
    await certificates[Symbol.asyncDispose]();
  });

  test.each(libraries)("by %s: the sentinels report the primary, and both are verified", async (client) => {
    const options = {
      client,
      tlsCaFile: certificates.caFile,
      sentinelUsername: "watcher",
      sentinelPassword: "w@tch",
    };
    const locks = createLocks(await connect(url, options));
    const lease = await locks.acquire("key", { waitMs: 20_000 });
    await waitUntil(
      async () => (await locks.admin.nodes())[0]?.notifications === "verified",
      "notifications are verified",
    );
    expect(await lease.release()).toBe(true);
    await locks.close();
    for (const wrong of [{ sentinelPassword: "another" }, { tlsCaFile: undefined }]) {
      const refused = createLocks(await connect(url, { ...options, ...wrong, commandTimeoutMs: 300 }));
      const { error } = await rejection(refused.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(String(error)).not.toContain("w@tch");
      await refused.close();
    }
  });

  test("a client of the user's own: the driver subscribes to its sentinels in the same way", async () => {
    const tls = { ca: await readFile(certificates.caFile) };
    const client = new Redis({
      name: "lab",
      sentinels: [{ host: "127.0.0.1", port: sentinelPort }],
      username: "app",
      password: "p@ss",
      tls,
      sentinelUsername: "watcher",
      sentinelPassword: "w@tch",
      sentinelTLS: tls,
      enableTLSForSentinelMode: true,
    });
    client.on("error", () => undefined);
    const locks = createLocks(redis(client));
    const watcher = sentinel.client({ username: "watcher", password: "w@tch" });
    await locks.withLock("key", { waitMs: 20_000 }, () => undefined);
    await waitUntil(
      async () => / user=watcher /.test(String(await watcher.client("LIST", "TYPE", "PUBSUB"))),
      "the sentinel has a subscriber",
    );
    await locks.close();
    client.disconnect();
  });
});

onRedis("connect to a quorum with TLS", () => {
  let certificates: Certificates;
  let servers: RedisServer[];
  let url: string;

  beforeAll(async () => {
    certificates = await makeCertificates();
    const ports = [await stablePort(), await stablePort(), await stablePort()];
    servers = await Promise.all(ports.map((port) => startRedis({ args: certificates.serverArgs(port) })));
    url = `redlocks://${ports.map((port) => `127.0.0.1:${port}`).join(",")}?nodeTimeoutMs=1000&restartGuard=off`;
  });

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await certificates[Symbol.asyncDispose]();
  });

  test.each(libraries)("by %s: locks on a majority of verified nodes", async (client) => {
    const locks = createLocks(await connect(url, { client, tlsCaFile: certificates.caFile }));
    const lease = await locks.acquire("key", { waitMs: 20_000 });
    const held = await Promise.all(servers.map((server) => server.client().exists("lock:key")));
    expect(held.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(1);
    expect(await lease.release()).toBe(true);
    await locks.close();
    const others = createLocks(await connect(url, { client }));
    const { error } = await rejection(others.tryAcquire("key"));
    expect(error).toMatchObject({ code: "quorum-not-reached" });
    await others.close();
  });
});

onRedis("connect by Sentinel", () => {
  let lab: Sentinels;

  beforeAll(async () => {
    lab = await startSentinels({});
    for (const server of lab.servers) {
      await server.client().call("ACL", "SETUSER", "app", "on", ">p@ss", "~*", "&*", "+@all");
    }
  });

  afterAll(async () => {
    await lab.stop();
  });

  test.each(libraries)("by %s: locks on the primary, in the given database", async (client) => {
    const hosts = lab.addresses.map(({ host, port }) => `${host}:${port}`).join(",");
    const url = `redis+sentinel://app:p%40ss@${hosts}/${lab.name}?client=${client}&database=2`;
    await worksBy(url, ["a"]);
    const primary = (await lab.primary()).client({ db: 2 });
    expect(await primary.exists("holdfast:fence")).toBe(1);
  });

  describe.each(libraries)("with minReplicas and the least rights, by %s", (client) => {
    const query = `client=${client}&minReplicas=1`;

    async function urlFor(...rights: readonly string[]): Promise<string> {
      for (const server of lab.servers) {
        await server.client().call("ACL", [...own.slice(1), ...rights]);
        await server.client().call("ACL", "LOG", "RESET");
      }
      const hosts = lab.addresses.map(({ host, port }) => `${host}:${port}`).join(",");
      return `redis+sentinel://holdfast:secret@${hosts}/${lab.name}?${query}`;
    }

    test("locks, and no command is refused", async () => {
      expect(forReplicas).toEqual(["+wait"]);
      await worksBy(await urlFor(...forReplicas), ["least"]);
      for (const server of lab.servers) {
        expect(await server.client().call("ACL", "LOG")).toEqual([]);
      }
    });

    test("without the right to WAIT the error comes at once, and no residue stays", async () => {
      const locks = createLocks(await connect(await urlFor()));
      const { error } = await rejection(locks.acquire("least", { waitMs: 60_000 }));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
      expect(String(error)).toContain("NOPERM");
      const probe = (await lab.primary()).client();
      await waitUntil(async () => (await probe.exists("lock:least")) === 0, "the grant is released");
      await locks.close();
    });
  });

  test.each(libraries)("by %s: sentinels that are not up yet are awaited", async (client) => {
    const proxy = await startProxy(lab.addresses[0]?.port as number);
    proxy.refuse(true);
    const url = `redis+sentinel://app:p%40ss@127.0.0.1:${proxy.port}/${lab.name}?client=${client}`;
    const locks = createLocks(await connect(url));
    try {
      const waiting = locks.acquire("late", { waitMs: 20_000 });
      expect((await locks.admin.nodes())[0]?.reachable).toBe(false);
      proxy.refuse(false);
      expect(await (await waiting).release()).toBe(true);
    } finally {
      await locks.close();
      await proxy.stop();
    }
  });
});

/** Acquires each key, waits for it, and hands it over. */
async function worksBy(url: string, keys: readonly string[]): Promise<void> {
  const driver = await connect(url);
  const [locks, other] = [createLocks(driver), createLocks(driver, { handover: false })];
  for (const key of keys) {
    const lease = await locks.acquire(key);
    const waiting = other.acquire(key);
    await waitUntil(async () => (await locks.inspect(key)).waiterCount === 1, "the waiter is queued");
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  }
  await Promise.all([locks.close(), other.close()]);
}
