import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { freePort } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { etcd, type EtcdOptions } from "holdfast/etcd";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";

import { expectBoundedAudit, expectOneRecordAfterLostReply } from "../../support/audit-attacks.ts";
import { onEtcd, startEtcd, type EtcdServer } from "../../support/etcd-server.ts";

onEtcd("etcd under faults:", () => {
  let server: EtcdServer;
  let opened: Locks[] = [];

  beforeAll(async () => {
    server = await startEtcd();
  });

  afterEach(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    const everyKey = { key: "AA==", range_end: "AA==" };
    await fetch(`${server.url}/v3/kv/deleterange`, { method: "POST", body: JSON.stringify(everyKey) });
  });

  afterAll(() => server.stop());

  function open(options?: EtcdOptions, endpoints: string | readonly string[] = server.url): Locks {
    const locks = createLocks(etcd(endpoints, options));
    opened.push(locks);
    return locks;
  }

  test("a restart of the server keeps the grant and the queue", async () => {
    const [here, there] = [open(), open()];
    const lease = await here.acquire("order", { ttlMs: 30_000 });
    const next = there.acquire("order", { ttlMs: 30_000, waitMs: 60_000 });
    await expect.poll(async () => (await here.inspect("order")).waiterCount).toBe(1);
    await server.kill();
    await server.restart();
    expect(await open().tryAcquire("order")).toBeNull();
    await lease.extend(40_000);
    expect(await lease.release()).toBe(true);
    const following = await next;
    expect(following.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await following.release()).toBe(true);
  });

  test("a grant whose reply was lost is found by the repeat", async () => {
    const loss = losing(isGrantRequest);
    const here = open({ fetch: loss.fetch });
    loss.losses = 1;
    const lease = await here.acquire("order", { ttlMs: 30_000, waitMs: 20_000 });
    expect(loss.losses).toBe(0);
    expect(await here.checkFence("order", lease.fencingToken)).toBe("current");
    expect(await open().tryAcquire("order")).toBeNull();
    expect(await lease.release()).toBe(true);
    expect(await open().tryAcquire("order")).not.toBeNull();
  });

  test("a break whose reply was lost has one record, and 1 000 records are kept", async () => {
    const loss = losing((path, body) => path === "/v3/kv/txn" && body.includes("count_only"));
    const [holder, other] = [open(), open()];
    await expectOneRecordAfterLostReply(holder, open({ fetch: loss.fetch }), () => (loss.losses = 1));
    const value = base64(JSON.stringify({ at: 1, note: JSON.stringify({ by: "ada", reason: "old" }) }));
    for (let page = 0; page < 10; page += 1) {
      const success = Array.from({ length: 100 }, (_, index) => ({
        request_put: { key: base64(`holdfast/audit/k\0${page * 100 + index}`), value },
      }));
      await fetch(`${server.url}/v3/kv/txn`, { method: "POST", body: JSON.stringify({ success }) });
    }
    await expectBoundedAudit([holder, other]);
  });

  test("a release whose reply was lost is confirmed by the repeat", async () => {
    const loss = losing((path) => path === "/v3/lease/revoke");
    const lease = await open({ fetch: loss.fetch }).acquire("order", { ttlMs: 30_000 });
    loss.losses = 1;
    expect(await lease.release()).toBe(true);
    expect(await open().tryAcquire("order")).not.toBeNull();
  });

  test("a request that gets no reply leaves no grant until its TTL", async () => {
    const loss = losing(isGrantRequest);
    const here = open({ fetch: loss.fetch, commandTimeoutMs: 300 });
    loss.losses = Infinity;
    await expect(here.tryAcquire("order", { ttlMs: 600_000 })).rejects.toMatchObject({ outcome: "unknown" });
    loss.losses = 0;
    expect(await open().acquire("order", { waitMs: 20_000 })).toBeDefined();
  });

  test("a request that is executed after the release, when its process has ended, leaves no grant", async () => {
    const late = holdingOne(isGrantRequest);
    const here = open({ fetch: late.fetch, commandTimeoutMs: 300 });
    late.isOn = true;
    const lease = await here.acquire("order", { ttlMs: 600_000 });
    expect(await lease.release()).toBe(true);
    await here.close();
    expect(await late.send()).toBe(404); // the lease of etcd that the request names has ended
    expect(await open().tryAcquire("order")).not.toBeNull();
  });

  test("a request that is executed after its wait ended as held leaves no grant", async () => {
    const late = holdingOne(isGrantRequest);
    const other = open();
    const holder = await other.acquire("order", { ttlMs: 600_000 });
    const here = open({ fetch: late.fetch, commandTimeoutMs: 300 });
    late.isOn = true;
    await expect(here.acquire("order", { waitMs: 1_000 })).rejects.toMatchObject({ code: "wait-timeout" });
    await holder.release();
    expect(await late.send()).toBe(404);
    expect((await other.inspect("order")).holders).toEqual([]);
  });

  test("a queue entry that is written after the end of the wait does not stay", async () => {
    const late = holdingOne(
      (path, body) => isGrantRequest(path, body) && !body.includes("request_delete_range"),
    );
    const holder = await open().acquire("order", { ttlMs: 600_000 });
    const here = open({ fetch: late.fetch, commandTimeoutMs: 300 });
    const other = open();
    late.isOn = true;
    const waiting = here.acquire("order", { waitMs: 20_000 });
    await expect.poll(async () => (await other.inspect("order")).waiterCount).toBe(1);
    await holder.release();
    await (await waiting).release();
    await here.close();
    expect(await late.send()).toBe(404);
    expect((await other.inspect("order")).waiterCount).toBe(0);
  });

  test("a lease whose renewals get no reply is lost before another can hold the lock", async () => {
    const loss = losing((path) => path === "/v3/lease/keepalive");
    const lease = await open({ fetch: loss.fetch, commandTimeoutMs: 300 }).acquire("order", { ttlMs: 2_000 });
    const waiting = open().acquire("order", { waitMs: 60_000 });
    loss.losses = Infinity;
    const next = await waiting;
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "engine-unreachable" });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("a late extension does not move the grant to a lease that ends before the validity of the next extension", async () => {
    const late = holdingOne(isGrantRequest);
    const lease = await open({ fetch: late.fetch, commandTimeoutMs: 300 }).acquire("order", {
      ttlMs: 10_000,
      renew: false,
    });
    late.isOn = true;
    await expect(lease.extend(20_000)).rejects.toMatchObject({ code: "engine-unavailable" });
    await pause(2_500); // the lease of the late extension ends sooner by this time
    await lease.extend(20_000);
    expect(await late.send()).toBe(200);
    const [holder] = (await open().inspect("order")).holders;
    expect(Number(holder?.remainingMs) + 1_000).toBeGreaterThan(lease.remainingMs()); // etcd counts whole seconds
    await lease.extend(20_000);
    expect(await lease.release()).toBe(true);
  });

  test("a renewal by a former leader does not count", async () => {
    const lease = await open({ fetch: renewedByFormerLeader }).acquire("order", {
      ttlMs: 2_000,
      renew: false,
    });
    await expect(lease.extend()).rejects.toMatchObject({ code: "engine-unavailable", retryable: true });
    const next = await open().acquire("order", { waitMs: 60_000 });
    expect(lease.signal.aborted).toBe(true);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("an endpoint that cannot be reached is replaced by the next", async () => {
    const endpoints = [`http://127.0.0.1:${await freePort()}`, server.url];
    const lease = await open({}, endpoints).acquire("order");
    expect(await lease.release()).toBe(true);
  });

  test("a user gets a new token after a restart, and a wrong password is refused", async () => {
    const secured = await startEtcd();
    onTestFinished(() => secured.stop());
    await enableUsers(secured.url);
    const url = `${secured.url.replace("http:", "etcd:")}?commandTimeoutMs=3000`;
    const locks = createLocks(await connect(url.replace("//", "//root:secret%21@")));
    opened.push(locks);
    const lease = await locks.acquire("order", { ttlMs: 30_000 });
    await secured.kill();
    await secured.restart();
    expect(await lease.release()).toBe(true);
    const wrong = open({ user: "root", password: "wrong" }, secured.url);
    await expect(wrong.tryAcquire("order")).rejects.toMatchObject({
      code: "engine-unavailable",
      retryable: false,
    });
  });

  test("tokens of the type JWT are replaced when the users have changed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-jwt-"));
    const pair = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    const [publicKey, privateKey] = [join(folder, "public.pem"), join(folder, "private.pem")];
    await writeFile(publicKey, pair.publicKey.export({ type: "spki", format: "pem" }));
    await writeFile(privateKey, pair.privateKey.export({ type: "pkcs1", format: "pem" }));
    const settings = {
      "auth-token": `jwt,pub-key=${publicKey},priv-key=${privateKey},sign-method=RS256,ttl=10m`,
    };
    const signing = await startEtcd(undefined, settings);
    const user = { name: "root", password: "secret!" };
    try {
      await enableUsers(signing.url);
      const locks = createLocks(etcd(signing.url, { user: user.name, password: user.password }));
      const waiter = createLocks(etcd(signing.url, { user: user.name, password: user.password }));
      opened.push(locks, waiter);
      const lease = await locks.acquire("order", { ttlMs: 30_000 });
      const waiting = waiter.acquire("order", { waitMs: 60_000 });
      await expect.poll(async () => (await locks.inspect("order")).waiterCount).toBe(1);
      const call = async (path: string, body: object, token?: string): Promise<{ token: string }> => {
        const headers: Record<string, string> = token === undefined ? {} : { authorization: token };
        const init = { method: "POST", headers, body: JSON.stringify(body) };
        return (await (await fetch(`${signing.url}/v3/auth/${path}`, init)).json()) as { token: string };
      };
      const { token } = await call("authenticate", user);
      expect(await call("user/add", { name: "other", password: "x" }, token)).toHaveProperty("header");
      await lease.extend(60_000);
      expect(await locks.tryAcquire("another")).not.toBeNull();
      expect(await lease.release()).toBe(true);
      expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken);
    } finally {
      await Promise.all(opened.splice(0).map((locks) => locks.close()));
      await signing.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

function isGrantRequest(path: string, body: string): boolean {
  return path === "/v3/kv/txn" && body.includes("request_put");
}

/** A `fetch` that executes requests, and loses as many replies as `losses` says. */
function losing(applies: (path: string, body: string) => boolean): { fetch: typeof fetch; losses: number } {
  const loss = {
    losses: 0,
    fetch: async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
      const response = await fetch(input, init);
      const { pathname } = new URL(input instanceof Request ? input.url : input);
      if (loss.losses > 0 && applies(pathname, init?.body as string)) {
        loss.losses -= 1;
        await response.text();
        throw new TypeError("fetch failed", { cause: { code: "ECONNRESET", message: "the reply was lost" } });
      }
      return response;
    },
  };
  return loss;
}

/** A `fetch` that holds the first request back while `isOn`, until `send`. The driver may give that request up before. */
function holdingOne(applies: (path: string, body: string) => boolean): {
  fetch: typeof fetch;
  isOn: boolean;
  /** @returns the status of the reply */
  send: () => Promise<number | undefined>;
} {
  let held: (() => Promise<Response>) | undefined;
  const holding = {
    isOn: false,
    fetch: (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
      const { pathname } = new URL(input instanceof Request ? input.url : input);
      if (!holding.isOn || held !== undefined || !applies(pathname, init?.body as string)) {
        return fetch(input, init);
      }
      held = () => fetch(input, { ...init, signal: null });
      return new Promise((_, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error));
      });
    },
    send: async (): Promise<number | undefined> => (await held?.())?.status,
  };
  return holding;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** A `fetch` whose renewals are answered by a leader of an earlier term, and have no effect. */
async function renewedByFormerLeader(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { pathname } = new URL(input instanceof Request ? input.url : input);
  if (pathname !== "/v3/lease/keepalive") {
    return fetch(input, init);
  }
  const { ID } = JSON.parse(init?.body as string) as { ID: string };
  return Response.json({ result: { header: { revision: "1", raft_term: "1" }, ID, TTL: "2" } });
}

async function enableUsers(url: string): Promise<void> {
  const calls = [
    ["user/add", { name: "root", password: "secret!" }],
    ["role/add", { name: "root" }],
    ["user/grant", { user: "root", role: "root" }],
    ["enable", {}],
  ] as const;
  for (const [path, body] of calls) {
    const response = await fetch(`${url}/v3/auth/${path}`, { method: "POST", body: JSON.stringify(body) });
    expect(response.ok, `${path}: ${await response.text()}`).toBe(true);
  }
}
