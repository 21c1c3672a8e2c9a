import { join } from "node:path";

import { waitUntil } from "@holdfast/test-kit";

import type { Program } from "./program.ts";
import { root } from "./samples.ts";

/** How a program of the documentation is run, and how it must end. */
export interface Run {
  /** The lock of the program. */
  readonly key: string;
  /** @defaultValue "redis" */
  readonly engine?: "redis" | "postgres" | "mysql" | "etcd" | "zookeeper";
  /** Declares what the page leaves to its reader, with `work`. */
  readonly before?: string;
  /** Follows the program: the part of a framework, or of the reader. */
  readonly after?: string;
  /** Texts of the program and their replacements, for example longer waits. */
  readonly edits?: Readonly<Record<string, string>>;
  /** Gives the program something to do, and resolves when it is done. Absent: the program needs no request. */
  readonly begin?: (program: Program) => Promise<unknown>;
  /** The first line of its work. Absent: the work is `work()`, which prints "working", and lasts until the test ends it. */
  readonly firstLine?: RegExp;
  /** How the program ends after SIGTERM during its work. Absent: its work takes no time. */
  readonly endInWork?: End;
  /** How it ends after SIGTERM while it waits for its lock. Absent: it never waits. */
  readonly endInWait?: End;
  /** Whether the program works until SIGTERM. Otherwise it ends after its work. */
  readonly isLasting?: true;
}

/** An exit code, or a signal, and a line that the program must have printed. */
export interface End {
  readonly by: number | "SIGTERM";
  /** Whether the program ends as in a crash, so that its queue entry, or a late grant, may stay until it expires. */
  readonly isAbrupt?: true;
  readonly line?: RegExp;
}

/** A payment provider. The charge of the order `deaf` ignores its signal. */
const provider = `globalThis.provider = {
  charge(request, options) {
    const { order, id = order, idempotencyKey, signal } = { ...request, ...options };
    return work(id === "deaf" ? undefined : signal, { id, idempotencyKey });
  },
};`;
/** A request waits as long as the test needs. */
const longWait = { "{ waitMs: 500 }": "{ waitMs: 60_000 }", "waitMs: 5_000": "waitMs: 60_000" };
const server = {
  key: "order:7",
  before: provider,
  edits: longWait,
  begin: (program: Program): Promise<Response> => post(program),
  isLasting: true,
  endInWork: { by: 0 },
  endInWait: { by: 0 },
} as const;
const nest = {
  ...server,
  after: `
      import { NestFactory } from "@nestjs/core";
      const app = await NestFactory.create(AppModule, { logger: false });
      app.enableShutdownHooks();
      app.use("/orders/7/charge", (request, response, next) => {
        app.get(Payments).charge({ id: "7" }).then((receipt) => response.json(receipt), next);
      });
      await app.listen(process.env.PORT);`,
  endInWork: { by: "SIGTERM" }, // Nest sends itself the signal again
  endInWait: { by: "SIGTERM" },
} as const;
const scheduled = {
  before: "globalThis.report = work;",
  edits: { '"0 3 * * *"': '"* * * * * *"' },
  isLasting: true,
} as const;
const oneLock = `
await locks.withLock("order:555", { waitMs: 60_000 }, (lease) => console.log("held", lease.fencingToken));
await locks.close();`;

/** A program that only makes its locks. */
const driver = {
  key: "order:555",
  firstLine: /^held \d+n$/,
  endInWait: { by: "SIGTERM", isAbrupt: true },
} as const;

/** One row for each program, by its name. */
export const runs: Readonly<Record<string, Run>> = {
  "README.md": {
    key: "order:555",
    edits: { "{ signal: stop.signal }": "{ signal: stop.signal, waitMs: 60_000 }" },
    firstLine: /^book, with the fencing token \d+$/,
    endInWork: { by: 0, line: /^pen,/ },
    endInWait: { by: 1, isAbrupt: true },
  },
  "packages/holdfast/README.md": {
    key: "order:555",
    edits: { 'withLock("order:555", ': 'withLock("order:555", { waitMs: 60_000 }, ' },
    firstLine: /^held with the fencing token \d+$/,
    endInWait: { by: "SIGTERM", isAbrupt: true },
  },
  "docs/install.md": {
    key: "order:555",
    edits: { 'withLock("order:555", ': 'withLock("order:555", { waitMs: 60_000 }, ' },
    firstLine: /^held order:555 with the fencing token \d+$/,
    endInWait: { by: "SIGTERM", isAbrupt: true },
  },
  "docs/quickstart/express.md": server,
  "docs/quickstart/fastify.md": server,
  "docs/quickstart/nextjs.md": {
    ...server,
    // Like \`next start\`.
    after: `
      const { createServer } = await import("node:http");
      const server = createServer(async (incoming, outgoing) => {
        if (incoming.method !== "POST") return outgoing.writeHead(404).end();
        const id = decodeURIComponent(incoming.url.split("/")[2]);
        const reply = await POST(new Request("http://localhost" + incoming.url), { params: Promise.resolve({ id }) });
        outgoing.writeHead(reply.status, Object.fromEntries(reply.headers)).end(await reply.text());
      }).listen(process.env.PORT);
      process.once("SIGTERM", () => server.close(() => process.exit(0)));`,
  },
  "docs/quickstart/nestjs.md": nest,
  "docs/quickstart/worker.md": {
    key: "account:1",
    before: `
      import { once } from "node:events";
      globalThis.jobs = async function* (signal) {
        yield { account: 1 };
        if (!signal.aborted) await once(signal, "abort");
      };
      globalThis.apply = (job, { signal }) => work(signal);
      globalThis.giveBack = (job) => console.log("given back: " + job.account);`,
    isLasting: true,
    endInWork: { by: 0, line: /^given back: 1$/ },
    endInWait: { by: 0, line: /^given back: 1$/ },
  },
  "docs/quickstart/cron.md": {
    key: "nightly-report",
    before: "globalThis.report = work;",
    endInWork: { by: 1 },
  },
  "docs/quickstart/cron.md#2": { ...scheduled, key: "nightly", endInWork: { by: 0 } },
  "docs/quickstart/cron.md#3": { ...scheduled, key: "nightly", endInWork: { by: 0 } },
  "docs/recipes/bullmq.md": {
    key: "customer:Ada",
    before: "globalThis.bill = ({ customer }, { signal }) => work(signal, customer);",
    // The first job is followed by another one.
    after: `
      import { Queue } from "bullmq";
      const add = async () => {
        const queue = new Queue("orders", { connection: { url } });
        await queue.add("order", { customer: "Ada" });
        await queue.close();
      };
      let isTerminated = false;
      process.once("SIGTERM", () => (isTerminated = true));
      worker.once("completed", () => isTerminated || add());
      await add();`,
    begin: () => Promise.resolve(),
    isLasting: true,
    endInWork: { by: 0 },
  },
  "docs/recipes/effect.md": {
    key: "order:555",
    edits: longWait,
    firstLine: /^\d+n$/,
    endInWait: { by: 1 },
  },
  "docs/recipes/medusa.md": {
    key: "cart",
    before: `
      import { HoldfastLockingProvider } from ${JSON.stringify(join(root, "examples/recipes/dist/medusa.js"))};
      Object.assign(globalThis, { HoldfastLockingProvider });`,
    edits: {
      '"@medusajs/framework/utils"':
        '"data:text/javascript,export const Modules = {}, ModuleProvider = (_, { services: [Service] }) => (globalThis.Service = Service);"',
    },
    // Like \`medusa start\`.
    after: `
      const stopped = new Promise((resolve) => process.once("SIGTERM", resolve));
      const locking = new Service({}, { redisUrl: process.env.REDIS_URL });
      await locking.execute("cart", () => work(), { timeout: 60 });
      await stopped;
      process.exit(0);`,
    isLasting: true,
    endInWork: { by: 0 },
  },
  "docs/recipes/migrations.md": {
    key: "migrate",
    engine: "postgres",
    edits: {
      '"migrations"': JSON.stringify(join(root, "examples/recipes/migrations")),
      "lease.throwIfLost();": "await work(); lease.throwIfLost();",
    },
    endInWork: { by: 0 },
    endInWait: { by: 1 },
  },
  "docs/testing.md": {
    key: "key",
    after: 'console.log("aborted", lease.signal.aborted);',
    firstLine: /^aborted true$/,
  },
  "docs/testing.md#2": { key: "order:555", firstLine: /^held with the fencing token \d+$/ },
  "packages/nestjs/README.md": nest,
  "packages/server/README.md": {
    key: "order:7",
    edits: { "7420": "Number(process.env.PORT)" },
    begin: async (program) => {
      const url = `${await addressOf(program)}/v1/leases`;
      const body = JSON.stringify({ key: "order:7", waitMs: 10_000 });
      const headers = { "content-type": "application/json" };
      const { leaseId } = (await (await fetch(url, { method: "POST", headers, body })).json()) as {
        leaseId: string;
      };
      return fetch(`${url}/${leaseId}`, { method: "DELETE" });
    },
    firstLine: /^$/, // none
    isLasting: true,
    endInWork: { by: 0 },
  },
  "docs/drivers/connect.md": {
    ...driver,
    edits: { "await locks.close(); // closes the connections as well": oneLock, LOCKS_URL: "REDIS_URL" },
  },
  "docs/drivers/postgres.md": { ...driver, engine: "postgres", after: `${oneLock}\nawait pool.end();` },
  "docs/drivers/mysql.md": {
    ...driver,
    engine: "mysql",
    edits: { '"mysql://app@db.example/shop"': "process.env.DATABASE_URL" },
    after: `${oneLock}\nawait pool.end();`,
  },
  "docs/drivers/etcd.md": {
    ...driver,
    engine: "etcd",
    edits: {
      '["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"]':
        '[process.env.DATABASE_URL.replace("etcd:", "http:")]',
    },
    after: oneLock,
  },
  "docs/drivers/zookeeper.md": {
    ...driver,
    engine: "zookeeper",
    edits: {
      '["10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181"]': "[new URL(process.env.DATABASE_URL).host]",
    },
    after: oneLock,
  },
};

/** Sends the request of the quick starts for HTTP. */
export async function post(program: Program, order = "7"): Promise<Response> {
  return fetch(`${await addressOf(program)}/orders/${encodeURIComponent(order)}/charge`, { method: "POST" });
}

/** The address of a program, once it listens. */
export async function addressOf({ port }: Program): Promise<string> {
  const url = `http://127.0.0.1:${port}`;
  const listens = (): Promise<boolean> =>
    fetch(url).then(
      () => true,
      () => false,
    );
  await waitUntil(listens, "the program listens");
  return url;
}
