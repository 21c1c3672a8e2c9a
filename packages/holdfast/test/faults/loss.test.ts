import { spawn, type ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import { createLocks, EngineError, isLockError, LeaseLostError, type Lease, type Locks } from "holdfast";
import { redis, type RedisClient, type RedisOptions } from "holdfast/redis";
import { Redis, type RedisOptions as ClientOptions } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import type { RenewTrace } from "../../src/diagnostics.ts";
import { startProxy, type Proxy } from "../support/proxy.ts";
import { onRedis, startRedis, type RedisServer } from "../support/redis-server.ts";
import { abortOf, block, rejection, until } from "../support/until.ts";

/** What a machine under load may be late by, where only a much larger lateness would be a fault. */
const slackMs = 800;

let shared: RedisServer;
let direct: Redis;
let endings: (() => void | Promise<void>)[] = [];
let keys = 0;

function newKey(): string {
  keys += 1;
  return `loss:${process.pid}:${keys}`;
}

/** Done after the test, the newest first. */
function atEnd(ending: () => void | Promise<void>): void {
  endings.push(ending);
}

function open(client: RedisClient, options?: RedisOptions): Locks {
  const locks = createLocks(redis(client, options), { closeTimeoutMs: 1_000 });
  atEnd(() => locks.close());
  return locks;
}

/** A client that outlives its server, or has another way to it. */
function connect(port: number, options?: Omit<ClientOptions, "protocol" | "replyMapping">): Redis {
  const client = new Redis(port, "127.0.0.1", { ...options });
  client.on("error", () => undefined);
  atEnd(() => {
    client.disconnect();
  });
  return client;
}

async function ownServer(options?: { args?: string[]; port?: number }): Promise<RedisServer> {
  const server = await startRedis(options);
  atEnd(() => server.stop());
  return server;
}

async function ownProxy(server: RedisServer): Promise<Proxy> {
  const proxy = await startProxy(server.port);
  atEnd(() => proxy.stop());
  return proxy;
}

/** Acquires and releases, and hears messages: everything is connected and known. */
async function warmUp(locks: Locks): Promise<void> {
  await locks.withLock(newKey(), () => undefined);
  await until(async () => (await locks.nodes())[0]?.notifications === "proved", "messages are heard");
}

function reasonOf(signal: AbortSignal): string {
  expect(signal.reason).toBeInstanceOf(LeaseLostError);
  return (signal.reason as LeaseLostError).reason;
}

/** The outcomes of renewals of a key, as they come. */
function renewals(key: string): string[] {
  const outcomes: string[] = [];
  const listen = (message: unknown): void => {
    const trace = message as RenewTrace;
    if (trace.key === key) {
      outcomes.push(String(trace.outcome));
    }
  };
  subscribe("tracing:holdfast:renew:asyncEnd", listen);
  atEnd(() => void unsubscribe("tracing:holdfast:renew:asyncEnd", listen));
  return outcomes;
}

function start(program: string, ...args: (string | number)[]): { child: ChildProcess; lines: string[] } {
  const path = fileURLToPath(new URL(`../support/${program}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args.map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...text.split("\n").filter((line) => line !== ""));
  });
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    }
  });
  return { child, lines };
}

onRedis("a lease on a real server", () => {
  beforeAll(async () => {
    shared = await startRedis();
    direct = shared.client();
  });

  afterEach(async () => {
    for (const ending of endings.reverse()) {
      await ending();
    }
    endings = [];
    await until(async () => (await direct.keys("lock:*")).length === 0, "no lock is left");
    await until(async () => (await direct.keys("holdfast:queue:*")).length === 0, "no queue is left");
  });

  afterAll(async () => {
    await shared.stop();
  });

  // The key.

  test.each([
    ["deleted", "expired"],
    ["taken by another", "stolen"],
  ])("is told lost within one renewal after its key was %s", async (how, reason) => {
    const key = newKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    const aborted = abortOf(lease.signal);
    const changedAt = performance.now();
    await (how === "deleted" ? direct.del(`lock:${key}`) : direct.set(`lock:${key}`, "another's"));
    expect((await aborted) - changedAt).toBeLessThan(1_000 + slackMs); // its validity ends after 3 s
    expect(reasonOf(lease.signal)).toBe(reason);
    expect(lease.remainingMs()).toBe(0);
    expect(await lease.release()).toBe(false);
    expect(await direct.get(`lock:${key}`)).toBe(how === "deleted" ? null : "another's");
    await direct.del(`lock:${key}`);
  });

  test("is told lost at once when messages are heard again, if its key went while they were not", async () => {
    const key = newKey();
    const locks = open(connect(shared.port));
    await warmUp(locks);
    const lease = await locks.acquire(key, { ttlMs: 30_000 });
    const aborted = abortOf(lease.signal);
    const changedAt = performance.now();
    await Promise.all([direct.call("CLIENT", "KILL", "TYPE", "pubsub"), direct.del(`lock:${key}`)]);
    expect((await aborted) - changedAt).toBeLessThan(3_000); // the first renewal would be due after 10 s
    expect(reasonOf(lease.signal)).toBe("expired");
  });

  test("is told lost at its first renewal after its server was started anew and empty", async () => {
    const server = await ownServer();
    const lease = await open(connect(server.port)).acquire(newKey(), { ttlMs: 6_000 });
    const aborted = abortOf(lease.signal);
    const { validUntil } = lease;
    server.kill("SIGKILL");
    await server.stop();
    await ownServer({ port: server.port });
    expect(await aborted).toBeLessThan(validUntil - 6_000 / 3);
    expect(reasonOf(lease.signal)).toBe("expired");
  });

  // The server.

  test("under a frozen server aborts its signal at validUntil", async () => {
    const server = await ownServer();
    const lease = await open(server.client()).acquire(newKey(), { ttlMs: 2_000 });
    const { signal } = lease;
    const aborted = abortOf(signal);
    server.freeze();
    atEnd(() => {
      server.thaw();
    });
    const { validUntil } = lease;
    const loopDelay = monitorEventLoopDelay({ resolution: 1 });
    const measuring = setTimeout(() => loopDelay.enable(), validUntil - performance.now() - 200);
    atEnd(() => {
      clearTimeout(measuring);
      loopDelay.disable();
    });
    const abortedAt = await aborted;
    await pause(10); // a stall is measured once it is over
    const loopDelayMs = loopDelay.max / 1e6;
    expect(lease.validUntil).toBe(validUntil);
    expect(abortedAt).toBeGreaterThanOrEqual(validUntil - 20);
    expect(abortedAt).toBeLessThanOrEqual(validUntil + 50 + loopDelayMs);
    expect(reasonOf(signal)).toBe("engine-unreachable");
  });

  test("with the event loop blocked past the TTL throwIfLost throws before any timer ran", async () => {
    const lease = await open(connect(shared.port)).acquire(newKey(), { ttlMs: 100 });
    const { signal } = lease;
    lease.throwIfLost();
    block(lease.remainingMs() + 5);
    expect([signal.aborted, lease.remainingMs()]).toEqual([false, 0]);
    expect(() => {
      lease.throwIfLost();
    }).toThrow(expect.toSatisfy((error: unknown) => isLockError(error, "lease-lost")));
    expect(reasonOf(signal)).toBe("expired");
  });

  test("survives a renewal whose reply is lost together with its connection", async () => {
    const proxy = await ownProxy(shared);
    const key = newKey();
    const outcomes = renewals(key);
    const lease = await open(connect(proxy.port)).acquire(key, { ttlMs: 2_000 });
    await proxy.loseNextReply(/extend/);
    const known = lease.validUntil;
    await until(() => lease.validUntil > known + 1_000 || lease.signal.aborted, "two more renewals");
    expect([lease.signal.aborted, outcomes.includes("lost")]).toEqual([false, false]);
  });

  test("survives renewals that are not answered, and is renewed when the server answers again", async () => {
    const key = newKey();
    const outcomes = renewals(key);
    const locks = open(connect(shared.port), { commandTimeoutMs: 150 });
    const lease = await locks.acquire(key, { ttlMs: 3_000 });
    await until(() => outcomes.includes("renewed"), "the first renewal");
    await direct.client("PAUSE", 1_600, "ALL");
    await until(() => outcomes.includes("unknown"), "a failing renewal");
    const seen = outcomes.length;
    await until(() => outcomes.slice(seen).includes("renewed") || lease.signal.aborted, "a renewal");
    expect([lease.signal.aborted, lease.remainingMs() > 0]).toEqual([false, true]);
  });

  // Grants that go to nobody.

  test("a process that is frozen while it is granted costs the next waiter at most 8 s, whatever the TTL", async () => {
    const key = newKey();
    const [holder, next] = [open(connect(shared.port)), open(connect(shared.port))];
    await Promise.all([warmUp(holder), warmUp(next)]);
    const held = await holder.acquire(key, { ttlMs: 60_000 });
    const { child, lines } = start("waits.mjs", shared.port, key, 60_000);
    await until(async () => (await holder.inspect(key)).waiterCount === 1, "the child waits");
    await until(() => isEarlier(key), "it came first, however well both know the server's time");
    const waiting = next.acquire(key, { ttlMs: 60_000, waitMs: 20_000 });
    await until(async () => (await holder.inspect(key)).waiterCount === 2, "both wait");
    child.kill("SIGSTOP");
    const releasedAt = performance.now();
    await held.release();
    expect((await holder.inspect(key)).holders).toMatchObject([{ owner: "child" }]);
    const lease = await waiting;
    const waitedMs = performance.now() - releasedAt;
    expect(waitedMs).toBeGreaterThan(2_500); // the frozen one's claim was respected
    expect(waitedMs).toBeLessThan(8_000);
    child.kill("SIGCONT");
    await until(async () => (await holder.inspect(key)).waiterCount === 1, "the child waits again");
    expect(lines).toEqual([]);
    expect(await lease.release()).toBe(true);
    await until(() => lines.length > 0, "the child has it in the end");
    const { granted } = JSON.parse(lines[0] ?? "{}") as { granted?: string };
    expect(BigInt(granted ?? 0)).toBeGreaterThan(lease.fencingToken);
    child.kill("SIGKILL");
    await direct.del(`lock:${key}`);
  });

  /** Whether the ticket of who waits is older than two processes may disagree by. */
  async function isEarlier(key: string): Promise<boolean> {
    const [member = ""] = await direct.zrange(`holdfast:queue:{lock:${key}}`, "0", "0");
    const ticket = Number(/:(\d+) /.exec(member)?.[1]);
    const [seconds = 0, micros = 0] = await direct.time();
    return Number(seconds) * 1_000_000 + Number(micros) > ticket + 200_000;
  }

  test("a caller that aborts while its grant is under way leaves the lock free", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port), { commandTimeoutMs: 1_000 });
    await warmUp(locks);
    for (const call of [
      (key: string, signal: AbortSignal) => locks.acquire(key, { signal, ttlMs: 60_000 }),
      (key: string, signal: AbortSignal) => locks.tryAcquire(key, { signal, ttlMs: 60_000 }),
    ]) {
      const key = newKey();
      const caller = new AbortController();
      proxy.pause("replies");
      const refused = rejection(call(key, caller.signal));
      await until(async () => (await direct.exists(`lock:${key}`)) === 1, "it is granted on the server");
      caller.abort("changed my mind");
      expect((await refused).error).toBe("changed my mind");
      proxy.resume("replies");
      await until(async () => (await direct.exists(`lock:${key}`)) === 0, "it is given back");
    }
  });

  test("a waiter that aborts while its grant is on the way by message leaves the lock free", async () => {
    const proxy = await ownProxy(shared);
    const [holder, waiter] = [open(connect(shared.port)), open(connect(proxy.port))];
    await Promise.all([warmUp(holder), warmUp(waiter)]);
    const key = newKey();
    const held = await holder.acquire(key, { ttlMs: 60_000 });
    const caller = new AbortController();
    const refused = rejection(waiter.acquire(key, { signal: caller.signal, ttlMs: 60_000 }));
    await until(async () => (await holder.inspect(key)).waiterCount === 1, "it waits");
    proxy.pause("replies");
    await held.release();
    expect(await direct.exists(`lock:${key}`)).toBe(1);
    proxy.pause("requests"); // neither may its cancellation arrive before the message
    caller.abort("changed my mind");
    expect((await refused).error).toBe("changed my mind");
    proxy.resume("replies");
    proxy.resume("requests");
    await until(async () => (await direct.exists(`lock:${key}`)) === 0, "it is given back");
  });

  // Lost replies.

  test.each([
    ["acquire", "resends by itself", {}],
    ["acquire", "gives up", { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }],
    ["tryAcquire", "gives up", { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }],
  ] as const)(
    "a reply lost on a free lock: the next try of %s, with a client that %s, is the same grant",
    async (call, _how, clientOptions) => {
      const proxy = await ownProxy(shared);
      const locks = open(connect(proxy.port, clientOptions));
      await warmUp(locks);
      const key = newKey();
      const lost = proxy.loseNextReply(/\$7\r\nacquire\r\n/);
      const acquiring = locks[call](key, { ttlMs: 60_000 });
      await lost;
      const fence = `holdfast:fence:{lock:${key}}`;
      const [token, first] = await Promise.all([direct.get(`lock:${key}`), direct.hget(fence, "first")]);
      expect(token).not.toBeNull();
      const lease = (await acquiring) as Lease;
      expect(lease.fencingToken).toBe(BigInt(first ?? 0));
      expect(await direct.get(`lock:${key}`)).toBe(token);
      expect(await direct.hget(fence, "first")).toBe(first);
      expect(await lease.release()).toBe(true);
    },
  );

  // No server.

  test("with the server down a try rejects within its budget, never with null, and recovers by itself", async () => {
    const server = await ownServer();
    const tries = [
      { budgetMs: 500, locks: open(connect(server.port), { commandTimeoutMs: 500 }) },
      { budgetMs: 2_000, locks: open(connect(server.port)) },
      { budgetMs: 500, locks: open(connect(server.port), { commandTimeoutMs: 500 }) },
    ] as const;
    await Promise.all(tries.slice(0, 2).map(({ locks }) => warmUp(locks))); // the third one never met it
    server.kill("SIGKILL");
    await server.stop();
    await Promise.all(
      tries.map(async ({ locks, budgetMs }) => {
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const { error, afterMs } = await rejection(locks.tryAcquire(newKey()));
          expect(error).toBeInstanceOf(EngineError);
          expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
          expect(afterMs).toBeLessThan(budgetMs + slackMs);
        }
      }),
    );
    await ownServer({ port: server.port });
    for (const { locks } of tries) {
      let lease: Lease | null | undefined;
      await until(async () => {
        lease = await locks.tryAcquire(newKey()).catch(() => undefined);
        return lease !== undefined;
      }, "it is back");
      expect(await lease?.release()).toBe(true);
    }
  });

  test("an acquire, and a waiter, live through an outage of a second", async () => {
    const server = await ownServer();
    const [holder, waiter, late] = [0, 1, 2].map(() =>
      open(connect(server.port), { commandTimeoutMs: 500 }),
    ) as [Locks, Locks, Locks];
    const key = newKey();
    await holder.acquire(key, { ttlMs: 60_000 });
    const waiting = waiter.acquire(key, { waitMs: 20_000 });
    await until(async () => (await holder.inspect(key)).waiterCount === 1, "it waits");
    server.kill("SIGKILL");
    await server.stop();
    const asking = late.acquire(newKey(), { waitMs: 20_000 });
    await pause(1_000);
    await ownServer({ port: server.port });
    const [waited, asked] = await Promise.all([waiting, asking]);
    expect([waited.remainingMs() > 0, asked.remainingMs() > 0]).toEqual([true, true]);
  });

  test("an acquire that finds no server until its time is over says so, and not that the lock is held", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port), { commandTimeoutMs: 300 });
    await server.stop();
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 900 }));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
    expect(afterMs).toBeGreaterThan(850);
    expect(afterMs).toBeLessThan(900 + slackMs);
  });

  test.each([
    ["keeps commands for later", {}],
    [
      "keeps nothing",
      { enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    ],
  ])(
    "an engine that cannot be reached at the release does not fail the work, and is told later, by a client that %s",
    async (_how, clientOptions) => {
      const proxy = await ownProxy(shared);
      const client = connect(proxy.port, clientOptions);
      await once(client, "ready");
      const locks = open(client, { commandTimeoutMs: 300 });
      await warmUp(locks);
      const [key, other] = [newKey(), newKey()];
      const lease = await locks.acquire(other, { ttlMs: 60_000 });
      const value = await locks.withLock(key, { ttlMs: 60_000 }, () => {
        proxy.refuse(true);
        proxy.cut();
        return "done";
      });
      expect(value).toBe("done");
      const { error, afterMs } = await rejection(lease.release());
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect(afterMs).toBeLessThan(300 + slackMs);
      expect(await direct.exists(`lock:${key}`, `lock:${other}`)).toBe(2);
      proxy.refuse(false);
      await until(async () => (await direct.exists(`lock:${key}`, `lock:${other}`)) === 0, "released");
    },
  );

  // Load.

  test("a TTL of 100 ms is renewed without a busy loop, and is not lost", async () => {
    const locks = open(connect(shared.port));
    await warmUp(locks);
    for (let attempt = 1; ; attempt += 1) {
      let lastTick = performance.now();
      let stallMs = 0;
      const ticking = setInterval(() => {
        stallMs = Math.max(stallMs, performance.now() - lastTick);
        lastTick = performance.now();
      }, 5);
      const lease = await locks.acquire(newKey(), { ttlMs: 100 });
      const before = await scriptCalls();
      await pause(1_000);
      const calls = (await scriptCalls()) - before;
      clearInterval(ticking);
      const isLost = lease.signal.aborted;
      await lease.release();
      expect(calls).toBeLessThan(60);
      if (!isLost || attempt === 4) {
        expect(isLost).toBe(false);
        expect(calls).toBeGreaterThan(15);
        return;
      }
      expect(stallMs).toBeGreaterThan(25); // only a busy machine is an excuse
    }
  });

  async function scriptCalls(): Promise<number> {
    const stats = await direct.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  test("a held lease does not keep its process alive", async () => {
    const { child, lines } = start("holds-and-ends.mjs", shared.port);
    const [code] = (await once(child, "close")) as [number | null];
    expect([lines, code]).toEqual([["held"], 0]);
    expect(await direct.pttl("lock:held")).toBeGreaterThan(30_000);
    await direct.del("lock:held");
  });

  // What does not pass by itself.

  test("a wrong password is told at once, and not after the wait", async () => {
    const server = await ownServer();
    await server.client().config("SET", "requirepass", "right");
    for (const clientOptions of [{ password: "wrong" }, {}]) {
      const locks = open(connect(server.port, clientOptions));
      for (const call of [
        () => locks.acquire(newKey(), { waitMs: 30_000 }),
        () => locks.tryAcquire(newKey()),
      ]) {
        const { error, afterMs } = await rejection(call());
        expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
        expect(afterMs).toBeLessThan(1_500);
      }
    }
  });

  test("a user who may not run scripts is told at once", async () => {
    const server = await ownServer();
    await server.client().acl("SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all", "-evalsha", "-eval");
    const locks = open(connect(server.port, { username: "reader", password: "secret" }));
    const { error, afterMs } = await rejection(locks.acquire(newKey(), { waitMs: 30_000 }));
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect((error as Error).message).toContain("NOPERM");
    expect(afterMs).toBeLessThan(1_500);
  });

  test("an error does not show the token, however deep one looks", async () => {
    const server = await ownServer();
    const admin = server.client();
    await admin.acl("SETUSER", "worker", "on", ">secret", "~*", "&*", "+@all");
    const locks = open(connect(server.port, { username: "worker", password: "secret" }));
    const key = newKey();
    const lease = await locks.acquire(key, { ttlMs: 60_000 });
    const token = (await admin.get(`lock:${key}`)) ?? "";
    await admin.acl("SETUSER", "worker", "-evalsha", "-eval");
    const { error } = await rejection(lease.release());
    expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
    expect(token).not.toBe("");
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(token);
  });
});
