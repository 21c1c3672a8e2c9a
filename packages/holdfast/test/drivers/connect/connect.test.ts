import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EventEmitter } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";

import { createLocks, type Locks } from "holdfast";
import { connect, type ConnectOptions } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  standaloneNodeArgs,
  makeCertificates,
  rejection,
  startRedis,
  stablePort,
  waitUntil,
  type Certificates,
  type RedisServer,
} from "@holdfast/test-kit";

import { parseUrl } from "../../../src/drivers/connect/url.ts";
import { loadClientLibrary } from "../../../src/drivers/connect/load-client.ts";
import { resolve } from "../../../src/drivers/connect/options.ts";
import { loadTls } from "../../../src/drivers/connect/tls.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { onRedis } from "../../support/servers.ts";

const libraries = ["ioredis", "node-redis"] as const;
const secret = "hunter2/Geheim@";
const escaped = encodeURIComponent(secret);
const socket = join(tmpdir(), `holdfast-${process.pid}.sock`);
let server: RedisServer;
let tlsPort: number;
let certificates: Certificates;
let endings: (() => Promise<void>)[] = [];

onRedis("connect", () => {
  beforeAll(async () => {
    certificates = await makeCertificates();
    tlsPort = await stablePort();
    server = await startRedis({ args: [...certificates.serverArgs(tlsPort), "--unixsocket", socket] });
    await server.client().call("ACL", "SETUSER", "app", "on", `>${secret}`, "~*", "&*", "+@all");
  });

  afterEach(async () => {
    for (const cleanup of endings.splice(0).reverse()) {
      await cleanup();
    }
  });

  afterAll(async () => {
    await server.stop();
    await certificates[Symbol.asyncDispose]();
  });

  test("memory: is the driver of this process", async () => {
    for (const url of ["memory:", "memory://"]) {
      const locks = await open(url, { commandTimeoutMs: 300 });
      expect(await locks.withLock("key", (lease) => lease.key)).toBe("key");
      expect((await locks.nodes())[0]?.node).toContain("memory");
    }
  });

  describe.each(libraries)("by %s", (client) => {
    test("a server by its URL: its locks are there, in that database, and its connections end with it", async () => {
      const probe = server.client({ db: 3 });
      const before = await connectionsOf(probe);
      const url = `redis://app:${escaped}@127.0.0.1:${server.port}/3?prefix=mine:&connectionName=worker`;
      const driver = await connect(url, { client });
      const [first, second] = [createLocks(driver), createLocks(driver)];
      await first.withLock("key", async () => {
        expect(await probe.keys("mine:*")).toEqual(["mine:key"]);
        expect(await second.tryAcquire("key")).toBeNull();
      });
      await heard(first);
      const list = String(await probe.client("LIST"));
      expect(list.match(/ name=worker .* user=app /g)).toHaveLength(2); // for commands and for messages
      expect(shown(driver)).not.toContain("Geheim");
      expect(shown(first)).not.toContain("Geheim");
      await first.close();
      expect(await second.withLock("key", () => "still open")).toBe("still open");
      await second.close();
      await waitUntil(async () => (await connectionsOf(probe)) === before, "its connections are gone");
    });

    test("rediss: with a certificate that is verified", async () => {
      const url = `rediss://127.0.0.1:${tlsPort}?tlsCaFile=${encodeURIComponent(certificates.caFile)}`;
      expect(await worksBy(url, { client })).toBe(true);
      expect(await worksBy(url.replace("127.0.0.1", "localhost"), { client })).toBe(true);
    });

    test.each([
      ["whose signer nobody knows", {}, /certificate/],
      ["of another name", { tlsServername: "other.example" }, /other\.example/],
    ])("rediss: a server with a certificate %s is not spoken to", async (_what, more, why) => {
      const heardOf = failures();
      const tlsCaFile = "tlsServername" in more ? certificates.caFile : undefined;
      const locks = await open(`rediss://app:${escaped}@127.0.0.1:${tlsPort}`, {
        client,
        tlsCaFile,
        commandTimeoutMs: 300,
        ...more,
      });
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(heardOf.join()).toMatch(why);
      expect(shown(error) + heardOf.join()).not.toContain("Geheim");
    });

    test("rediss: with tlsVerify=false any certificate will do, with a warning", async () => {
      const warned: string[] = [];
      const listen = (warning: Error & { code?: string }): void => void warned.push(warning.code ?? "");
      process.on("warning", listen);
      endings.push(async () => void process.off("warning", listen));
      expect(await worksBy(`rediss://127.0.0.1:${tlsPort}?tlsVerify=false`, { client })).toBe(true);
      expect(warned).toContain("HOLDFAST_TLS_NOT_VERIFIED");
    });

    test("rediss: with our own certificate, where the server asks for one", async () => {
      const port = await stablePort();
      const strict = await startRedis({ args: certificates.serverArgs(port, { asksClients: true }) });
      endings.push(() => strict.stop());
      const { caFile, certFile, keyFile } = certificates;
      const options = { client, tlsCaFile: caFile, commandTimeoutMs: 300 };
      const own = { tlsCertFile: certFile, tlsKeyFile: keyFile };
      expect(await worksBy(`rediss://127.0.0.1:${port}`, { ...options, ...own })).toBe(true);
      const without = await open(`rediss://127.0.0.1:${port}`, options);
      expect((await rejection(without.tryAcquire("key"))).error).toMatchObject({
        code: "engine-unavailable",
      });
    });

    test("redis+unix: by the server's socket", async () => {
      expect(await worksBy(`redis+unix://app:${escaped}@${socket}?database=2`, { client })).toBe(true);
    });

    test("redlock: a majority of three, of which one is down", async () => {
      const durable = ["--appendonly", "yes", "--appendfsync", "always"];
      const servers = await Promise.all([1, 2, 3].map(() => startRedis({ args: durable })));
      endings.push(...servers.map((each) => () => each.stop()));
      const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
      const driver = await connect(`redlock://${hosts.join(",")}/1?nodeTimeoutMs=500`, { client });
      const locks = createLocks(driver);
      expect(driver.capabilities.guarantee).toBe("quorum");
      const lease = await locks.acquire("key");
      const held = await Promise.all(servers.map((each) => each.client({ db: 1 }).exists("lock:key")));
      expect(held.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(1);
      await servers[2]?.stop();
      expect(await lease.release()).toBe(true);
      expect(await locks.withLock("key", () => "by two")).toBe("by two");
      const probes = servers.slice(0, 2).map((each) => each.client());
      await locks.close();
      for (const probe of probes) {
        await waitUntil(async () => (await connectionsOf(probe)) <= 2, "only ours are left");
      }
    });

    test("a password that is wrong is told, and not shown", async () => {
      const heardOf = failures();
      const own = await startRedis();
      endings.push(() => own.stop());
      await own.client().config("SET", "requirepass", "another");
      const locks = await open(`redis://:${escaped}@127.0.0.1:${own.port}`, {
        client,
        commandTimeoutMs: 300,
      });
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(heardOf.join()).toContain("WRONGPASS");
      expect(shown(error) + heardOf.join() + shown(await locks.nodes())).not.toContain("Geheim");
    });

    test("a server that is not there yet is waited for", async () => {
      const port = await stablePort();
      const heardOf = failures();
      const locks = await open(`redis://127.0.0.1:${port}`, { client });
      const waiting = locks.acquire("key", { waitMs: 20_000 });
      await waitUntil(() => heardOf.some((detail) => detail.includes("ECONNREFUSED")), "it has tried");
      const late = await startRedis({ port });
      endings.push(() => late.stop());
      expect(await (await waiting).release()).toBe(true);
    });

    test("an outage is lived through, with the same driver", async () => {
      const own = await startRedis();
      const locks = await open(`redis://127.0.0.1:${own.port}`, { client, commandTimeoutMs: 500 });
      await locks.withLock("key", () => heard(locks));
      await own.stop();
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      const waiting = locks.acquire("key", { waitMs: 20_000 });
      const again = await startRedis({ port: own.port });
      endings.push(() => again.stop());
      expect(await (await waiting).release()).toBe(true);
      await heard(locks);
    });
  });

  // The server answers with an alert, which may still arrive when the connection has been given up.
  test("rediss: a second error of a connection that failed does not end the process", async () => {
    const heardOf: unknown[] = [];
    const client = await clientOf("ioredis", `rediss://127.0.0.1:${tlsPort}`, (error) => {
      heardOf.push(error);
      const { stream } = client as object as { stream: EventEmitter };
      heardOf.push(stream.listenerCount("error"));
    });
    await waitUntil(() => heardOf.length > 1, "it has failed");
    expect(heardOf.slice(0, 2)).toEqual([expect.objectContaining({ code: "SELF_SIGNED_CERT_IN_CHAIN" }), 1]);
  });

  // Whether the driver takes such a client is a matter of the driver: here it only has to lead there.
  test.each(libraries)("redis+cluster: a client of %s that finds the node of a key", async (library) => {
    const cluster = await startRedis({ args: await standaloneNodeArgs() });
    endings.push(() => cluster.stop());
    const probe = cluster.client();
    await probe.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await probe.call("ACL", "SETUSER", "app", "on", `>${secret}`, "~*", "&*", "+@all");
    await probe.call("ACL", "SETUSER", "default", "resetpass");
    await waitUntil(
      async () => String(await probe.cluster("INFO")).includes("cluster_state:ok"),
      "it is a cluster",
    );
    const client = await clientOf(library, `redis+cluster://app:${escaped}@127.0.0.1:${cluster.port}`);
    const set = (): Promise<boolean> =>
      client.set("{a}", "led here").then(
        () => true,
        () => false,
      );
    await waitUntil(set, "it has found the cluster");
    expect(await probe.get("{a}")).toBe("led here");
    expect(String(await probe.client("LIST"))).toContain(" user=app ");
  });

  test("a certificate's file that cannot be read is named", async () => {
    await expect(connect("rediss://127.0.0.1?tlsCaFile=/nowhere/ca.pem")).rejects.toThrow(
      'Expected `tlsCaFile` to be a file that can be read, got "/nowhere/ca.pem" (ENOENT)',
    );
  });
});

async function open(url: string, options?: ConnectOptions): Promise<Locks> {
  const locks = createLocks(await connect(url, options), { closeTimeoutMs: 500 });
  endings.push(() => locks.close());
  return locks;
}

async function worksBy(url: string, options: ConnectOptions): Promise<boolean> {
  const locks = await open(url, options);
  const lease = await locks.acquire(`key of ${url}`);
  await heard(locks);
  return lease.release();
}

/** Messages arrive, on a connection of their own. */
async function heard(locks: Locks): Promise<void> {
  await waitUntil(async () => (await locks.nodes())[0]?.notifications === "verified", "messages are heard");
}

async function connectionsOf(probe: ReturnType<RedisServer["client"]>): Promise<number> {
  return String(await probe.client("LIST"))
    .trim()
    .split("\n").length;
}

/** What the diagnostics tell of connections that failed. */
function failures(): string[] {
  const details: string[] = [];
  const listen = (message: unknown): void => {
    details.push(inspect(message, { depth: Infinity, showHidden: true }));
  };
  subscribe("holdfast:node", listen);
  endings.push(async () => void unsubscribe("holdfast:node", listen));
  return details;
}

/** A client as `connect` makes it. */
async function clientOf(
  library: (typeof libraries)[number],
  url: string,
  failed: (error: unknown) => void = () => undefined,
): Promise<{ set(key: string, value: string): Promise<unknown> }> {
  const address = parseUrl(url);
  const { access } = resolve(address, {});
  const openClients = await loadClientLibrary(library);
  const plan = {
    url: address,
    credentials: access,
    tls: await loadTls(access.tls),
    commandTimeoutMs: 2_000,
    random: systemRandom,
  };
  const [opened] = openClients({ ...plan, failed });
  if (opened === undefined) {
    throw new Error("one client");
  }
  endings.push(async () => {
    opened.close();
  });
  return opened.client as object as { set(key: string, value: string): Promise<unknown> };
}

function shown(value: unknown): string {
  return `${String(value)}\n${inspect(value, { depth: Infinity, showHidden: true })}\n${JSON.stringify(value)}`;
}
