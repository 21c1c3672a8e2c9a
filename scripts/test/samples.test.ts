import { startRedis, timeFactor, waitUntil } from "@holdfast/test-kit";
import { startEtcd, startMariaDb, startPostgres, startZooKeeper } from "@holdfast/test-kit/engines";
import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis } from "holdfast/redis";
import { describe, expect, test } from "vitest";

import { onEtcd } from "../../packages/holdfast/test/support/etcd-server.ts";
import { onMariaDb } from "../../packages/holdfast/test/support/mariadb-server.ts";
import { onPostgres } from "../../packages/holdfast/test/support/postgres-server.ts";
import { onRedis } from "../../packages/holdfast/test/support/servers.ts";
import { onZooKeeper } from "../../packages/holdfast/test/support/zookeeper-server.ts";
import { startProgram, type Program } from "./support/program.ts";
import { addressOf, post, runs, type End, type Run } from "./support/sample-runs.ts";
import { programsOf, samples, type Sample } from "./support/samples.ts";

// The whole programs of the documentation run as printed, and get two faults each: SIGTERM, and a restart of their server.

const blocks = await samples();
const programs = programsOf(blocks);
/**
 * Every whole program of these pages must run. Other programs are compiled (`snippets.test.ts`). Nacos and Upstash have no server here.
 */
const pages =
  /^(README|docs\/(install|testing|(quickstart|recipes)\/\w+|drivers\/(?!nacos|upstash)\w+)|packages\/\w+\/README)\.md/;

test("a block that makes its locks is a whole program, and another one is a fragment", () => {
  const block = { page: "none.md", line: 1, language: "ts" } as const;
  const [whole, several, nest, part] = [
    'import { createLocks, isLockError } from "holdfast";',
    'import {\n  createLocks,\n  type Lease,\n} from "holdfast";',
    'import { WithLock } from "@holdfast/nestjs";',
    'import { isLockError } from "holdfast";\ncreateLocks(memory());',
  ].map((text) => ({ ...block, text }));
  expect([...programsOf([part!, whole!, several!, nest!])]).toEqual([
    ["none.md", whole],
    ["none.md#2", several],
    ["none.md#3", nest],
  ]);
});

test("every whole program of the pages that users copy from has a row in the table, and every row a program", () => {
  expect([...programs.keys()].filter((name) => pages.test(name) && !(name in runs))).toEqual([]);
  expect(Object.keys(runs).filter((name) => !programs.has(name))).toEqual([]);
  // Fragments are compiled as TypeScript.
  const whole = new Set(programs.values());
  expect(blocks.filter((block) => block.language === "js" && !whole.has(block))).toEqual([]);
});

describe.concurrent("of the documentation,", () => {
  onPostgres("on PostgreSQL,", () => survive("postgres"));
  onMariaDb("on MariaDB,", () => survive("mysql"));
  onEtcd("on etcd,", () => survive("etcd"));
  onZooKeeper("on ZooKeeper,", () => survive("zookeeper"));

  onRedis("on Redis,", () => {
    survive("redis");
    test.each(["express", "fastify", "nextjs"])(
      "the quick start for %s never asks a client to repeat what may have been done",
      (page) =>
        onBench(`docs/quickstart/${page}.md`, answerTruly, {
          edits: { "waitMs: 500": `waitMs: ${Math.ceil(2_000 * timeFactor)}` },
        }),
    );
    test("the script of the quick start for cron reports once in a period", () =>
      onBench("docs/quickstart/cron.md", reportOnce, { before: "globalThis.report = () => {};" }));
  });
});

function survive(engine: Run["engine"]): void {
  const names = Object.keys(runs).filter((name) => (runs[name]!.engine ?? "redis") === engine);
  test.each(names)("%s survives SIGTERM and a restart of its server", (name) =>
    onBench(name, async (bench) => {
      await bench.terminateInWork();
      await bench.restartServer();
      await bench.terminateInWait();
    }),
  );
}

async function answerTruly(bench: Bench): Promise<void> {
  const { server } = bench;
  const connections = await server.connections();
  const program = await bench.start();
  await addressOf(program);
  // `next build` loads the module too, on a machine without Redis.
  if (bench.page.includes("nextjs")) expect(await server.connections()).toBe(connections);

  const first = post(program, "7");
  await program.line(/^working$/);
  expect(await answer(await post(program, "7"))).toEqual([409, { code: "wait-timeout" }]);
  program.child.kill("SIGWINCH");
  expect(await answer(await first)).toEqual([200, { id: "7", idempotencyKey: "order:7" }]);

  const aborted = post(program, "8");
  await program.line(/^working$/);
  await breakLock(server.locks, "order:8");
  expect(await answer(await aborted)).toEqual([202, { code: "lease-lost" }]);

  const charged = post(program, "deaf");
  await program.line(/^working$/);
  await breakLock(server.locks, "order:deaf");
  program.child.kill("SIGWINCH");
  expect(await answer(await charged)).toEqual([200, { id: "deaf", idempotencyKey: "order:deaf" }]);

  expect((await post(program, "x".repeat(65))).status).toBe(400);
  expect((await post(program, "x".repeat(600))).status).toBeLessThan(500);
  await server.kill();
  expect(await answer(await post(program, "9"))).toEqual([503, { code: "engine-unavailable" }]);
}

async function reportOnce(bench: Bench): Promise<void> {
  for (const line of [/^reported$/, /^done by .+/]) {
    const program = await bench.start();
    await program.line(line);
    expect(await program.end()).toBe(0);
  }
}

async function answer(response: Response): Promise<[number, unknown]> {
  return [response.status, await response.json()];
}

async function breakLock(locks: Locks, key: string): Promise<void> {
  const [holder] = (await locks.inspect(key)).holders;
  await locks.admin.breakLock(key, { fencingToken: holder!.fencingToken!, reason: "test" });
}

/** @param changes of the row of the program */
async function onBench(
  name: string,
  steps: (bench: Bench) => Promise<void>,
  changes: Partial<Run> = {},
): Promise<void> {
  const run = { ...runs[name]!, ...changes };
  const server = await servers[run.engine ?? "redis"]();
  const bench = new Bench(programs.get(name)!, run, server);
  try {
    await steps(bench);
  } finally {
    await bench.close();
  }
}

/** One program, and a server for it alone. */
class Bench {
  readonly server: Server;
  readonly #sample: Sample;
  readonly #run: Run;
  readonly #started: { close(): Promise<void> }[] = [];

  constructor(sample: Sample, run: Run, server: Server) {
    this.#sample = sample;
    this.#run = run;
    this.server = server;
  }

  get page(): string {
    return this.#sample.page;
  }

  async close(): Promise<void> {
    for (const program of this.#started) await program.close();
    await this.server.stop();
  }

  async terminateInWork(): Promise<void> {
    const { endInWork } = this.#run;
    if (endInWork === undefined) return;
    const program = await this.start();
    const done = this.#begin(program);
    await this.#working(program, done);
    await program.terminate();
    await this.#finish(program, done);
    await this.#ends(program, endInWork);
    await this.#isFree(program);
  }

  async terminateInWait(): Promise<void> {
    const { endInWait } = this.#run;
    if (endInWait === undefined) return;
    const held = await this.server.locks.acquire(this.#run.key);
    const program = await this.start();
    const done = this.#begin(program);
    await this.#waiting(program);
    await program.terminate();
    if (done === undefined) {
      await this.#ends(program, endInWait);
      await held.release();
    } else {
      // A request that waits is answered before the end.
      await held.release();
      await this.#working(program, done);
      await this.#finish(program, done);
      await this.#ends(program, endInWait);
    }
    if (!endInWait.isAbrupt) await this.#isFree(program);
  }

  /** The server is killed and started again, after it has ended all connections, while the program waits, or else while it works. */
  async restartServer(): Promise<void> {
    const { endInWait, endInWork, begin, isLasting } = this.#run;
    const held = endInWait && (await this.server.locks.acquire(this.#run.key));
    const program = await this.start();
    const done = this.#begin(program);
    await (held ? this.#waiting(program) : this.#working(program, done));
    if (endInWait ?? endInWork) {
      await this.server.kill();
      await this.server.restart();
    }
    if (held) {
      // The driver of the test may need several attempts until the server accepts it again.
      const isReleased = (): Promise<boolean> =>
        held.release().then(
          () => true,
          () => false,
        );
      await waitUntil(isReleased, "the test has released the lock");
      await this.#working(program, done);
    }
    await this.#finish(program, done);
    if (begin) {
      const again = this.#begin(program);
      await this.#working(program, again);
      await this.#finish(program, again);
    }
    if (isLasting) await program.terminate();
    await this.#ends(program, { by: isLasting && endInWork ? endInWork.by : 0 });
  }

  async start(): Promise<Program> {
    const { before, after, edits = {} } = this.#run;
    let { text } = this.#sample;
    for (const [from, to] of Object.entries({ ...edits, "redis://127.0.0.1:6379": this.server.url })) {
      text = text.replaceAll(from, to);
    }
    const names = ["REDIS_URL", "HOLDFAST_URL", "DATABASE_URL"];
    const env = Object.fromEntries(names.map((name) => [name, this.server.url]));
    const program = await startProgram(text, { before, after }, env);
    this.#started.push(program);
    return program;
  }

  #begin(program: Program): Promise<unknown> | undefined {
    const done = this.#run.begin?.(program);
    done?.catch(() => undefined); // awaited by `finish`
    return done;
  }

  /** Resolves when the work has begun. Without `work()` a request takes no time. */
  async #working(program: Program, done: Promise<unknown> | undefined): Promise<void> {
    const { begin, firstLine } = this.#run;
    if (begin === undefined || firstLine === undefined) await program.line(firstLine ?? /^working$/);
    else await done;
  }

  #waiting(program: Program): Promise<void> {
    const waits = async (): Promise<boolean> =>
      (await this.server.locks.inspect(this.#run.key)).waiterCount === 1;
    return waitUntil(waits, `the program waits: ${program.output()}`);
  }

  /** Ends the work of the program, and checks the reply to its request. */
  async #finish(program: Program, done: Promise<unknown> | undefined): Promise<void> {
    if (this.#run.firstLine === undefined) program.child.kill("SIGWINCH");
    const reply = await done;
    if (reply instanceof Response) expect(reply.ok, program.output()).toBe(true);
  }

  async #ends(program: Program, { by, line }: End): Promise<void> {
    expect(await program.end(), program.output()).toBe(by);
    expect(program.output()).not.toContain("Unhandled error event"); // a client without a listener of `error`
    if (line) expect(program.lines, program.output()).toContainEqual(expect.stringMatching(line));
  }

  /** The lock is free at once, and not after its TTL. */
  async #isFree(program: Program): Promise<void> {
    const lease = await this.server.locks.tryAcquire(this.#run.key);
    const state = JSON.stringify(await this.server.locks.inspect(this.#run.key));
    expect(lease, `${state}\n${program.output()}`).not.toBeNull();
    await lease!.release();
  }
}

/** A server whose data survive a restart. */
interface Server {
  readonly url: string;
  readonly locks: Locks;
  /** How many connections the server has accepted. */
  connections(): Promise<number>;
  /** Ends all connections, and kills the server. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

async function redisServer(): Promise<Server> {
  const server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
  const client = server.client();
  const locks = createLocks(redis(client));
  return {
    url: `redis://127.0.0.1:${server.port}`,
    locks,
    async connections() {
      return Number(/total_connections_received:(\d+)/.exec(await client.info("stats"))?.[1]);
    },
    async kill() {
      await client.call("CLIENT", "KILL", "TYPE", "normal");
      await client.call("CLIENT", "KILL", "TYPE", "pubsub");
      server.kill("SIGKILL");
    },
    restart: () => server.restart(),
    async stop() {
      await locks.close();
      await server.stop();
    },
  };
}

const servers = {
  redis: redisServer,
  async postgres() {
    const server = await startPostgres();
    return storeServer(server, server.url);
  },
  async mysql() {
    const server = await startMariaDb();
    return storeServer(server, server.url);
  },
  async etcd() {
    const server = await startEtcd();
    return storeServer(server, server.url.replace("http:", "etcd:"));
  },
  async zookeeper() {
    const server = await startZooKeeper();
    return storeServer(server, `zookeeper://${server.address}`);
  },
};

async function storeServer(
  server: Omit<Server, "url" | "locks" | "connections">,
  url: string,
): Promise<Server> {
  const locks = createLocks(await connect(url));
  return {
    url,
    locks,
    connections: () => Promise.reject(new Error("not counted")),
    kill: () => server.kill(),
    restart: () => server.restart(),
    async stop() {
      await locks.close();
      await server.stop();
    },
  };
}
