// The program of a cell: `check <client> <url> <format>`, in a folder where the package and one client library are installed. Node, Bun
// and Deno run this file as TypeScript, as an ES module and as CommonJS. It prints one line of JSON, and must then end without an exit call.

import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

import { createLocks, isLockError, type Lease, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis, type RedisClient } from "holdfast/redis";

/** The line that the program prints. */
export interface ProgramReport {
  /** The version of the runtime. */
  readonly version: string;
  /** Whether the runtime has `await using` in its JavaScript. */
  readonly hasAwaitUsing: boolean;
  /** Whether `require` and `import` load the same copy of the package. Null in a format without both. */
  readonly isOneCopy: boolean | null;
  /** The checks that failed, with the reasons. */
  readonly failures: readonly string[];
}

interface Context {
  /** `locks` and `other` have a client each, as two processes do. */
  readonly locks: Locks;
  readonly other: Locks;
  readonly url: string;
  readonly library: string;
}

interface OpenClient {
  readonly client: RedisClient;
  readonly close: () => Promise<unknown>;
}

const renewedTtlMs = 900;
const withinMs = 20_000;
/** A waiter polls at the latest after this time, so a sooner grant came by a message. */
const pollMs = 4_000;

const checks: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  acquires: async ({ locks }) => {
    const lease = await locks.acquire("acquires");
    expect(typeof lease.fencingToken === "bigint" && lease.remainingMs() > 0, "the lease is not valid");
    expect(await lease.release(), "the release reports a loss");
  },

  "waits and is handed the lock": async ({ locks, other }) => {
    const first = await locks.acquire("waits");
    const waiting = other.acquire("waits", { waitMs: withinMs });
    await until(
      async () => (await locks.inspect("waits")).waiterCount === 1,
      "the waiter is not in the queue",
    );
    await first.release();
    const second = await waiting;
    expect(second.fencingToken > first.fencingToken, "the fencing token did not rise");
    await second.release();
  },

  "reports a timeout": async ({ locks, other }) => {
    const held = await locks.acquire("timeout", { owner: "the holder" });
    const error: unknown = await other.acquire("timeout", { waitMs: 0 }).catch((caught: unknown) => caught);
    expect(isLockError(error, "wait-timeout"), "the error is not recognised");
    expect(isLockError(error, "wait-timeout") && error.holder?.owner === "the holder", "no holder");
    await held.release();
  },

  "renews and extends": async ({ locks }) => {
    const lease = await locks.acquire("renews", { ttlMs: renewedTtlMs });
    const firstEnd = lease.validUntil;
    await until(() => lease.validUntil > firstEnd, "the watchdog did not renew");
    const renewedEnd = lease.validUntil;
    await lease.extend(10 * renewedTtlMs);
    expect(lease.validUntil > renewedEnd, "extend() did not move the end");
    expect(await lease.release(), "the release reports a loss");
  },

  "gets the signal of a loss": async ({ locks, other }) => {
    const lease = await locks.acquire("loss", { ttlMs: renewedTtlMs });
    const { signal } = lease;
    await other.admin.breakLock("loss", { fencingToken: lease.fencingToken, reason: "a test" });
    await until(() => signal.aborted, "the signal did not abort");
    expect(isLockError(signal.reason, "lease-lost"), "the reason of the signal is not recognised");
    expect(!(await lease.release()), "the release reports no loss");
  },

  "ends a lease with its block": async ({ locks }) => {
    const key = await disposed(locks);
    const again = await locks.tryAcquire(key);
    expect(again !== null, "the lock is still held after the block");
    await again?.release();
  },

  "limits a semaphore": async ({ locks, other }) => {
    const options = { limit: 2 };
    const [first, second] = await Promise.all([
      locks.semaphore("permits", options).acquire(),
      other.semaphore("permits", options).acquire(),
    ]);
    expect((await other.semaphore("permits", options).tryAcquire()) === null, "a third permit was granted");
    await first.release();
    const third = await other.semaphore("permits", options).acquire({ waitMs: withinMs });
    await Promise.all([second.release(), third.release()]);
  },

  "continues after the loss of its connections": async ({ locks, other, url }) => {
    await send(url, "CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE normal");
    let held: Lease | undefined;
    await until(async () => {
      held = await locks.acquire("lost", { waitMs: withinMs }).catch(() => undefined);
      return held !== undefined;
    }, "no lock after the loss");
    const waiting = other.acquire("lost", { waitMs: withinMs });
    await until(
      async () => (await locks.inspect("lost")).waiterCount === 1,
      "the waiter is not in the queue after the loss",
    );
    const releasedAt = performance.now();
    await held?.release();
    await (await waiting).release();
    expect(performance.now() - releasedAt < pollMs, "the hand-over came by a poll, and not by a message");
  },

  "connects by a URL": async ({ url, library }) => {
    if (library !== "ioredis" && library !== "redis") {
      return; // `connect` opens clients of ioredis and node-redis only
    }
    const locks = createLocks(await connect(url));
    const key = await locks.withLock("url", (lease: Lease) => lease.key);
    expect(key === "url", "no lock by the URL");
    await locks.close();
  },
};

const [library = "", url = "", format = ""] = process.argv.slice(2);

main().catch((error: unknown) => {
  process.exitCode = 1;
  console.error(error);
});

async function main(): Promise<void> {
  const failures: string[] = [];
  const clients = [await openClient(), await openClient()] as const;
  const [locks, other] = [createLocks(redis(clients[0].client)), createLocks(redis(clients[1].client))];
  for (const [name, check] of Object.entries(checks)) {
    await check({ locks, other, url, library }).catch((error: unknown) => {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    });
  }
  const isOneCopy = format === "cjs" ? await checkCopies(locks, failures) : null;
  await locks.close();
  await other.close();
  await Promise.all(clients.map(({ close }) => close()));
  const hasAwaitUsing = blockWithAwaitUsing() !== undefined;
  const report: ProgramReport = { version: versionOfRuntime(), hasAwaitUsing, isOneCopy, failures };
  console.log(JSON.stringify(report));
}

async function openClient(): Promise<OpenClient> {
  const loaded = (format === "cjs" ? require(library) : await import(library)) as Record<string, any>;
  if (library === "redis") {
    const client = loaded["createClient"]({ url });
    client.on("error", () => undefined);
    await client.connect();
    return { client, close: () => ("close" in client ? client.close() : client.quit()) };
  }
  if (library === "@valkey/valkey-glide") {
    const { hostname: host, port } = new URL(url);
    const client = await loaded["GlideClient"].createClient({ addresses: [{ host, port: Number(port) }] });
    return { client, close: async () => client.close() };
  }
  if (library === "bun") {
    const client = new loaded["RedisClient"](url);
    return { client, close: async () => client.close() };
  }
  const client = new loaded["Redis"](url);
  return { client, close: () => client.quit() };
}

/** Uses the ES modules beside the modules of `require`. A runtime may load two copies of the package. */
async function checkCopies(locks: Locks, failures: string[]): Promise<boolean> {
  const esm = await import("holdfast");
  const held = await locks.acquire("copies");
  const error: unknown = await locks.acquire("copies", { waitMs: 0 }).catch((caught: unknown) => caught);
  await held.release();
  if (!esm.isLockError(error, "wait-timeout")) {
    failures.push("two copies: `import` does not recognise an error of `require`");
  }
  return esm.createLocks === createLocks;
}

/** Acquires and releases by `await using`, or by the same method where the syntax is missing. */
async function disposed(locks: Locks): Promise<string> {
  const block = blockWithAwaitUsing();
  if (block !== undefined) {
    return block(locks);
  }
  const lease = await locks.acquire("block");
  await lease[Symbol.asyncDispose]();
  return lease.key;
}

function blockWithAwaitUsing(): ((locks: Locks) => Promise<string>) | undefined {
  const AsyncFunction = disposed.constructor as new (
    ...source: string[]
  ) => (locks: Locks) => Promise<string>;
  try {
    return new AsyncFunction("locks", "await using lease = await locks.acquire('block'); return lease.key;");
  } catch {
    return undefined;
  }
}

function versionOfRuntime(): string {
  const { bun, deno, node } = process.versions;
  return bun ?? deno ?? node;
}

/** Sends commands on a connection of its own, and waits for the reply of each. */
async function send(url: string, ...commands: readonly string[]): Promise<void> {
  const socket = connectTcp(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  for (const command of commands) {
    socket.write(`${command}\r\n`);
    await once(socket, "data");
  }
  socket.destroy();
}

async function until(isDone: () => boolean | Promise<boolean>, failure: string): Promise<void> {
  for (const end = performance.now() + withinMs; !(await isDone());) {
    expect(performance.now() < end, failure);
    await pause(10);
  }
}

function expect(isMet: boolean, failure: string): void {
  if (!isMet) {
    throw new Error(failure);
  }
}
