import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createLocks, QuorumError, type Locks, type LocksOptions, type NodeVote } from "holdfast";
import { redlock, type RedisClient, type RedlockOptions } from "holdfast/redis";
import { Redis, type RedisOptions as ClientOptions } from "ioredis";
import { afterEach, expect, type describe } from "vitest";
import {
  limitMs,
  startProxy,
  type Proxy,
  freePort,
  stablePort,
  startLongUp,
  startRedis,
  type RedisServer,
  type SyncedFiles,
  waitUntil,
} from "@holdfast/test-kit";

import { onLongUpRedis, onRedis } from "./servers.ts";

/** A node with these arguments writes every change to its disk, so it has its data after each restart. */
export const durable = ["--appendonly", "yes", "--appendfsync", "always"];

let cleanups: (() => void | Promise<void>)[] = [];

/** `describe` for tests of a quorum on real servers. After each test its servers, clients and files are removed. */
export function onQuorum(
  name: string,
  tests: () => void,
  describeServers: ReturnType<typeof describe.skipIf> = onRedis,
): void {
  describeServers(name, () => {
    afterEach(async () => {
      const failures: unknown[] = [];
      for (const cleanup of cleanups.reverse()) {
        await Promise.resolve(cleanup()).catch((error: unknown) => failures.push(error));
      }
      cleanups = [];
      expect(failures).toEqual([]);
    });

    tests();
  });
}

/** `describe` like `onQuorum`, for tests with {@link startLongUpNodes}. */
export function onLongUpQuorum(name: string, tests: () => void): void {
  onQuorum(name, tests, onLongUpRedis);
}

/** The cleanups after the test, in reverse order. */
export function onCleanup(cleanup: () => void | Promise<void>): void {
  cleanups.push(async () => cleanup());
}

/** The address of a node: its own, or that of a proxy. */
export interface Endpoint {
  readonly port: number;
}

/** A server of a quorum, which remains the same node after restarts. */
export class QuorumNode implements Endpoint {
  readonly port: number;
  /** Direct access for tests. It reconnects automatically. */
  readonly direct: Redis;
  readonly #folder: string;
  #server: RedisServer | undefined;

  constructor(server: RedisServer, folder: string) {
    this.port = server.port;
    this.#server = server;
    this.#folder = folder;
    this.direct = connect(this, { retryStrategy: () => 20 });
  }

  get isUp(): boolean {
    return this.#server !== undefined;
  }

  /** The server keeps its connections and sends no reply. */
  freeze(): void {
    this.#server?.freeze();
  }

  thaw(): void {
    this.#server?.thaw();
  }

  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    const writers = await childrenOf(server?.pid);
    server?.kill("SIGKILL");
    for (const pid of writers) {
      process.kill(pid, "SIGKILL");
    }
    await server?.stop();
  }

  /** The machine of the server loses its power. @param synced the record of the server's writes */
  async losePower(synced: SyncedFiles): Promise<void> {
    await this.kill();
    await synced.losePower(this.#folder);
  }

  /** Restarts the server on the same port, with the data on its disk. Without arguments the server is not durable. */
  async restart(args: readonly string[] = []): Promise<void> {
    await this.kill();
    this.#server = await startRedis({ port: this.port, args: ["--dir", this.#folder, ...args] });
    await this.direct.ping();
  }

  async stop(): Promise<void> {
    this.thaw();
    await this.#server?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The keys of locks and queues on the node. */
  async remainingKeys(): Promise<string[]> {
    const [locks, queues] = await Promise.all([
      this.direct.keys("lock:*"),
      this.direct.keys("holdfast:queue:*"),
    ]);
    return [...locks, ...queues];
  }

  /** The contents and TTLs of these keys, and the node's clock offset, for messages of failures. */
  async describeKeys(keys: readonly string[]): Promise<string> {
    const contents = keys.map(async (key) => {
      const isText = (await this.direct.type(key)) === "string";
      const content = await (isText ? this.direct.get(key) : this.direct.zrange(key, "0", "-1"));
      return `${key} = ${String(content)} for ${await this.direct.pttl(key)} ms`;
    });
    const [seconds, micros] = await this.direct.time();
    const aheadMs = Number(seconds) * 1_000 + Number(micros) / 1_000 - Date.now();
    return `${(await Promise.all(contents)).join("; ")}; its clock is ${aheadMs.toFixed(0)} ms ahead of ours`;
  }

  /** Deletes the data of a lock, as an eviction does. */
  async loseData(key: string): Promise<void> {
    await this.direct.del(`lock:${key}`, `holdfast:fence:{lock:${key}}`);
  }

  holder(key: string): Promise<string | null> {
    return this.direct.get(`lock:${key}`);
  }
}

/** The processes that write files of a server. While one runs, the connections of the dead server stay open. Empty where `/proc` is unknown. */
async function childrenOf(pid: number | undefined): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return children.split(" ").filter(Boolean).map(Number);
}

export interface NodesOptions {
  /** Arguments of the servers. @defaultValue durable */
  readonly args?: readonly string[];
  /** Replaces the start of a server. It must use a free port and these arguments. */
  readonly start?: (args: string[], index: number) => Promise<RedisServer>;
}

/** Starts `count` nodes. At the end of the test no residue may remain on running nodes. */
export async function startNodes(
  count = 5,
  { args = durable, start }: NodesOptions = {},
): Promise<QuorumNode[]> {
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const folder = await mkdtemp(join(tmpdir(), "holdfast-node-"));
      const own = ["--dir", folder, ...args];
      return new QuorumNode(await (start ? start(own, index) : startRedis({ args: own })), folder);
    }),
  );
  onCleanup(async () => {
    try {
      await expectNoResidue(nodes);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });
  return nodes;
}

/** Starts nodes that report an uptime of one hour, so that every client counts them. */
export function startLongUpNodes(
  count = 5,
  args: readonly string[] = durable,
  env: Readonly<Record<string, string>> = {},
): Promise<QuorumNode[]> {
  // While such a node is down, no connection may take its port.
  return startNodes(count, {
    args,
    start: async (given) => startLongUp({ args: given, env, port: await stablePort() }),
  });
}

/** The default wait is far below the TTLs of tests, and sufficient for releases in the background. */
export async function expectNoResidue(nodes: readonly QuorumNode[], withinMs = 8_000): Promise<void> {
  let remaining: string[] = [];
  for (const node of nodes.filter(({ isUp }) => isUp)) {
    node.thaw();
    await waitUntil(
      async () => (remaining = await node.remainingKeys()).length === 0,
      "no residue remains",
      withinMs,
    ).catch(async () => {
      throw new Error(`left on node ${nodes.indexOf(node)}: ${await node.describeKeys(remaining)}`);
    });
  }
}

/** Waits until all requests are answered and no residue remains. After a disconnection, residue would stay until its TTL. */
export async function closeAndExpectNoResidue(
  drivers: readonly Locks[],
  nodes: readonly QuorumNode[],
): Promise<void> {
  await Promise.all(drivers.map((locks) => locks.admin.nodes())); // the reply comes after all earlier replies
  await expectNoResidue(nodes);
}

/** Starts one proxy for each node, for one client. */
export async function startProxies(nodes: readonly Endpoint[]): Promise<Proxy[]> {
  const proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)));
  onCleanup(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  return proxies;
}

/** Ends every connection of this client to these nodes, and refuses new connections. */
export function disconnect(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.refuse(true);
    proxy.cut();
  }
}

export function reconnect(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.refuse(false);
  }
}

/** A client that reconnects forever. */
export function connect(
  { port }: Endpoint,
  options?: Omit<ClientOptions, "protocol" | "replyMapping">,
): Redis {
  const client = new Redis(port, "127.0.0.1", { retryStrategy: () => 50, ...options });
  client.on("error", () => undefined);
  onCleanup(() => {
    client.disconnect();
  });
  return client;
}

/** The options of a client that counts nodes which were just started, and which lose no data. */
export const unguarded: RedlockOptions = { restartGuard: "off" };

/** A `Locks` with its own driver and clients, like another process. Its default is `unguarded`. */
export function open(
  endpoints: readonly Endpoint[],
  options?: RedlockOptions,
  locksOptions?: LocksOptions,
  clients: readonly RedisClient[] = endpoints.map((endpoint) => connect(endpoint)),
): Locks {
  const locks = createLocks(redlock(clients, { ...unguarded, ...options }), {
    closeTimeoutMs: 1_000,
    ...locksOptions,
  });
  onCleanup(() => locks.close());
  return locks;
}

/** Waits for the subscriptions to `count` nodes, and loads their scripts. */
export async function warmUp(locks: Locks, count?: number): Promise<void> {
  await awaitSubscribed(locks, count);
  for (let turn = 0; turn < 3; turn += 1) {
    await locks.withLock(newKey(), () => undefined);
  }
}

/** Waits for the verified subscriptions to `count` nodes. The default is all nodes. */
export async function awaitSubscribed(locks: Locks, count?: number): Promise<void> {
  await waitUntil(
    async () => {
      const states = await locks.admin.nodes();
      return (
        states.filter(({ notifications }) => notifications === "verified").length >= (count ?? states.length)
      );
    },
    "the subscriptions are verified",
    limitMs(20_000),
  );
}

let keys = 0;

export function newKey(): string {
  keys += 1;
  return `quorum:${process.pid}:${keys}`;
}

/** The value of the lock's key on each node. It begins with the holder's token. */
export async function holders(nodes: readonly QuorumNode[], key: string): Promise<(string | null)[]> {
  return Promise.all(nodes.map((node) => node.holder(key)));
}

/** Waits until `count` waiters are queued on each node. */
export async function queued(nodes: readonly QuorumNode[], key: string, count: number): Promise<void> {
  const queue = `holdfast:queue:{lock:${key}}`;
  await waitUntil(
    async () => {
      const lengths = await Promise.all(nodes.map(({ direct }) => direct.zcard(queue)));
      return lengths.every((length) => length === count);
    },
    `${count} wait on each of ${nodes.length} nodes`,
    limitMs(20_000),
  );
}

/** Tickets at this distance differ by more than the disagreement of two clients about the nodes' time. */
export const distanceMs = 60;

/** How many script calls a node has received. */
export async function scriptCalls(node: QuorumNode): Promise<number> {
  const stats = await node.direct.info("commandstats");
  return Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, calls]) => Number(calls)).reduce(
    (sum, calls) => sum + calls,
    0,
  );
}

/** The votes in a `QuorumError`, in the order of the nodes. */
export function votesOf(error: unknown): readonly NodeVote[] {
  expect(error).toBeInstanceOf(QuorumError);
  expect(error).toMatchObject({ code: "quorum-not-reached" });
  return (error as QuorumError).votes;
}

/** A port without a listener. */
export async function findFreePort(): Promise<Endpoint> {
  return { port: await freePort() };
}
