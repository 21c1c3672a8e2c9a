import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createLocks, QuorumError, type Locks, type LocksOptions, type NodeVote } from "holdfast";
import { redlock, type RedisClient, type RedlockOptions } from "holdfast/redis";
import { Redis, type RedisOptions as ClientOptions } from "ioredis";
import { afterEach, expect } from "vitest";
import {
  startProxy,
  type Proxy,
  freePort,
  startRedis,
  type RedisServer,
  waitUntil,
} from "@holdfast/test-kit";

import { onRedis } from "./servers.ts";

export { ExclusionChecker } from "./exclusion-checker.ts";

/** Such a node has every write on its disk, so it votes from its start, and again after a restart. */
export const durable = ["--appendonly", "yes", "--appendfsync", "always"];

let cleanups: (() => void | Promise<void>)[] = [];

/** `describe` for tests of a quorum on real servers; after each test nothing of it is left. */
export function onQuorum(name: string, tests: () => void): void {
  onRedis(name, () => {
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

/** Done after the test, the newest first. */
export function onCleanup(cleanup: () => void | Promise<void>): void {
  cleanups.push(async () => cleanup());
}

/** Where a client finds a node: itself, or a proxy before it. */
export interface Endpoint {
  readonly port: number;
}

/** A server of a quorum, which stays the same node over its restarts. */
export class QuorumNode implements Endpoint {
  readonly port: number;
  /** For looking and meddling; comes back by itself. */
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

  /** It keeps its connections and answers nothing. */
  freeze(): void {
    this.#server?.freeze();
  }

  thaw(): void {
    this.#server?.thaw();
  }

  /** By SIGKILL. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.kill("SIGKILL");
    await server?.stop();
  }

  /** On the same port, with what is on its disk. Without arguments it forgets, and is not durable. */
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

  /** The keys of locks and queues there. */
  async remainingKeys(): Promise<string[]> {
    const [locks, queues] = await Promise.all([
      this.direct.keys("lock:*"),
      this.direct.keys("holdfast:queue:*"),
    ]);
    return [...locks, ...queues];
  }

  /** What these keys hold and for how long, and how far its clock is ahead of ours: for who reads of a failure. */
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

  /** As by an eviction of all that it keeps of a lock. */
  async loseData(key: string): Promise<void> {
    await this.direct.del(`lock:${key}`, `holdfast:fence:{lock:${key}}`);
  }

  holder(key: string): Promise<string | null> {
    return this.direct.get(`lock:${key}`);
  }
}

export interface NodesOptions {
  /** Arguments of the servers. @defaultValue durable */
  readonly args?: readonly string[];
  /** Starts one instead, on a free port, with these arguments. */
  readonly start?: (args: string[], index: number) => Promise<RedisServer>;
}

/** Starts so many nodes. At the end of the test nothing may be left on those that are up. */
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

/** Far less than the TTLs that tests leave to run out, and enough for releases that go on in the background. */
export async function expectNoResidue(nodes: readonly QuorumNode[], withinMs = 8_000): Promise<void> {
  let remaining: string[] = [];
  for (const node of nodes.filter(({ isUp }) => isUp)) {
    node.thaw();
    await waitUntil(
      async () => (remaining = await node.remainingKeys()).length === 0,
      "nothing is left",
      withinMs,
    ).catch(async () => {
      throw new Error(`left on node ${nodes.indexOf(node)}: ${await node.describeKeys(remaining)}`);
    });
  }
}

/** What these drivers asked for is answered, and nothing is left of it: else it may stay where they are cut off. */
export async function closeAndExpectNoResidue(
  drivers: readonly Locks[],
  nodes: readonly QuorumNode[],
): Promise<void> {
  await Promise.all(drivers.map((locks) => locks.nodes())); // comes behind all else
  await expectNoResidue(nodes);
}

/** One proxy before each node: one client's way there. */
export async function startProxies(nodes: readonly Endpoint[]): Promise<Proxy[]> {
  const proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)));
  onCleanup(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  return proxies;
}

/** As if there were no way from this client to these nodes, and every connection there was ended. */
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

/** A client that outlives its server. */
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

/** A driver of its own, as another process would have it. */
export function open(
  endpoints: readonly Endpoint[],
  options?: RedlockOptions,
  locksOptions?: LocksOptions,
  clients: readonly RedisClient[] = endpoints.map((endpoint) => connect(endpoint)),
): Locks {
  const locks = createLocks(redlock(clients, options), { closeTimeoutMs: 1_000, ...locksOptions });
  onCleanup(() => locks.close());
  return locks;
}

/** Messages are heard from so many nodes, and their scripts are loaded: how it is after a while. */
export async function warmUp(locks: Locks, count?: number): Promise<void> {
  await awaitSubscribed(locks, count);
  for (let turn = 0; turn < 3; turn += 1) {
    await locks.withLock(newKey(), () => undefined);
  }
}

/** Messages of so many nodes reach us, of all unless said. */
export async function awaitSubscribed(locks: Locks, count?: number): Promise<void> {
  await waitUntil(
    async () => {
      const states = await locks.nodes();
      return (
        states.filter(({ notifications }) => notifications === "verified").length >= (count ?? states.length)
      );
    },
    "messages are heard",
    20_000,
  );
}

let keys = 0;

export function newKey(): string {
  keys += 1;
  return `quorum:${process.pid}:${keys}`;
}

/** So many nodes have this lock, and if told for how many grants: the holder's tokens. */
export async function holders(nodes: readonly QuorumNode[], key: string): Promise<(string | null)[]> {
  return Promise.all(nodes.map((node) => node.holder(key)));
}

/** So many wait on each of the nodes. */
export async function queued(nodes: readonly QuorumNode[], key: string, count: number): Promise<void> {
  const queue = `holdfast:queue:{lock:${key}}`;
  await waitUntil(
    async () => {
      const lengths = await Promise.all(nodes.map(({ direct }) => direct.zcard(queue)));
      return lengths.every((length) => length === count);
    },
    `${count} wait on each of ${nodes.length} nodes`,
    20_000,
  );
}

/** Their tickets differ by more than two clients may disagree about the nodes' time. */
export const distanceMs = 60;

/** How often a node was asked to run a script. */
export async function scriptCalls(node: QuorumNode): Promise<number> {
  const stats = await node.direct.info("commandstats");
  return Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, calls]) => Number(calls)).reduce(
    (sum, calls) => sum + calls,
    0,
  );
}

/** What the nodes said, in their order, of an error that says that there was no quorum. */
export function votesOf(error: unknown): readonly NodeVote[] {
  expect(error).toBeInstanceOf(QuorumError);
  expect(error).toMatchObject({ code: "quorum-not-reached" });
  return (error as QuorumError).votes;
}

/** A port that nobody listens on. */
export async function findFreePort(): Promise<Endpoint> {
  return { port: await freePort() };
}
