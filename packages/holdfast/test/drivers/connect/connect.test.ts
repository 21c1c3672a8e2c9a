import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  standaloneNodeArgs,
  rejection,
  startRedis,
  stablePort,
  waitUntil,
  type RedisServer,
} from "@holdfast/test-kit";

import { onRedis } from "../../support/servers.ts";
import {
  atEnd,
  awaitNotifications,
  cleanUp,
  clientOf,
  connectionsOf,
  escaped,
  failures,
  libraries,
  open,
  secret,
  shown,
  worksBy,
} from "./connect-fixture.ts";

const socket = join(tmpdir(), `holdfast-${process.pid}.sock`);
let server: RedisServer;

onRedis("connect", () => {
  beforeAll(async () => {
    server = await startRedis({ args: ["--unixsocket", socket] });
    await server.client().call("ACL", "SETUSER", "app", "on", `>${secret}`, "~*", "&*", "+@all");
  });

  afterEach(cleanUp);

  afterAll(() => server.stop());

  test("memory: opens the driver of this process", async () => {
    for (const url of ["memory:", "memory://"]) {
      const locks = await open(url, { commandTimeoutMs: 300 });
      expect(await locks.withLock("key", (lease) => lease.key)).toBe("key");
      expect((await locks.admin.nodes())[0]?.node).toContain("memory");
    }
  });

  describe.each(libraries)("by %s", (client) => {
    test("a server by its URL: locks are in that database, and the connections end with the driver", async () => {
      const probe = server.client({ db: 3 });
      const before = await connectionsOf(probe);
      const url = `redis://app:${escaped}@127.0.0.1:${server.port}/3?prefix=mine:&connectionName=worker`;
      const driver = await connect(url, { client });
      const [first, second] = [createLocks(driver), createLocks(driver)];
      await first.withLock("key", async () => {
        expect(await probe.keys("mine:*")).toEqual(["mine:key"]);
        expect(await second.tryAcquire("key")).toBeNull();
      });
      await awaitNotifications(first);
      const list = String(await probe.client("LIST"));
      expect(list.match(/ name=worker .* user=app /g)).toHaveLength(2); // one for commands, one for notifications
      expect(shown(driver)).not.toContain("Geheim");
      expect(shown(first)).not.toContain("Geheim");
      await first.close();
      expect(await second.withLock("key", () => "still open")).toBe("still open");
      await second.close();
      await waitUntil(async () => (await connectionsOf(probe)) === before, "the connections are closed");
    });

    test("redis+unix: connects by the server's socket", async () => {
      expect(await worksBy(`redis+unix://app:${escaped}@${socket}?database=2`, { client })).toBe(true);
    });

    test("redlock: works with a majority of three nodes, one of them down", async () => {
      const servers = await Promise.all([1, 2, 3].map(() => startRedis()));
      for (const each of servers) {
        atEnd(() => each.stop());
      }
      const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
      const driver = await connect(`redlock://${hosts.join(",")}/1?nodeTimeoutMs=500&restartGuard=off`, {
        client,
      });
      const locks = createLocks(driver);
      expect(driver.capabilities.guarantee).toBe("quorum");
      const lease = await locks.acquire("key");
      const probesOf = servers.map((each) => each.client({ db: 1 }));
      // A majority suffices for the lease, and a release needs a majority of the nodes that are left.
      await waitUntil(
        async () =>
          (await Promise.all(probesOf.map((one) => one.exists("lock:key")))).every((held) => held === 1),
        "all nodes have the lease",
      );
      await servers[2]?.stop();
      expect(await lease.release()).toBe(true);
      expect(await locks.withLock("key", () => "by two")).toBe("by two");
      const probes = servers.slice(0, 2).map((each) => each.client());
      await locks.close();
      for (const probe of probes) {
        await waitUntil(
          async () => (await connectionsOf(probe)) <= 2,
          "only the connections of the test remain",
        );
      }
    });

    test("a wrong password is reported, and not shown", async () => {
      const reported = failures();
      const own = await startRedis();
      atEnd(() => own.stop());
      await own.client().config("SET", "requirepass", "another");
      const locks = await open(`redis://:${escaped}@127.0.0.1:${own.port}`, {
        client,
        commandTimeoutMs: 300,
      });
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(reported.join()).toContain("WRONGPASS");
      expect(shown(error) + reported.join() + shown(await locks.admin.nodes())).not.toContain("Geheim");
    });

    test("a server that is not up yet is awaited", async () => {
      const port = await stablePort();
      const reported = failures();
      const locks = await open(`redis://127.0.0.1:${port}`, { client });
      const waiting = locks.acquire("key", { waitMs: 20_000 });
      await waitUntil(
        () => reported.some((detail) => detail.includes("ECONNREFUSED")),
        "the client has tried to connect",
      );
      const late = await startRedis({ port });
      atEnd(() => late.stop());
      expect(await (await waiting).release()).toBe(true);
    });

    test("the same driver works again after an outage", async () => {
      const own = await startRedis();
      const locks = await open(`redis://127.0.0.1:${own.port}`, { client, commandTimeoutMs: 500 });
      await locks.withLock("key", () => awaitNotifications(locks));
      await own.stop();
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      const waiting = locks.acquire("key", { waitMs: 20_000 });
      const again = await startRedis({ port: own.port });
      atEnd(() => again.stop());
      expect(await (await waiting).release()).toBe(true);
      await awaitNotifications(locks);
    });
  });

  // The driver decides whether it supports such a client. Here the client only has to reach the node.
  test.each(libraries)(
    "redis+cluster: opens a client of %s that finds the node of a key",
    async (library) => {
      const cluster = await startRedis({ args: await standaloneNodeArgs() });
      atEnd(() => cluster.stop());
      const probe = cluster.client();
      await probe.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
      await probe.call("ACL", "SETUSER", "app", "on", `>${secret}`, "~*", "&*", "+@all");
      await probe.call("ACL", "SETUSER", "default", "resetpass");
      await waitUntil(
        async () => String(await probe.cluster("INFO")).includes("cluster_state:ok"),
        "the cluster is up",
      );
      const client = await clientOf(library, `redis+cluster://app:${escaped}@127.0.0.1:${cluster.port}`);
      const set = (): Promise<boolean> =>
        client.set("{a}", "led here").then(
          () => true,
          () => false,
        );
      await waitUntil(set, "the client has found the cluster");
      expect(await probe.get("{a}")).toBe("led here");
      expect(String(await probe.client("LIST"))).toContain(" user=app ");
    },
  );
});
