import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { freePort, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { transform } from "esbuild";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { onRedis } from "../../packages/holdfast/test/support/servers.ts";

// The programs of the quick starts run as printed, with the names that a page leaves to its reader declared before them.

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The work of the pages for HTTP: it lasts until SIGUSR2. */
const charge = `
globalThis.charge = (id, lease) => new Promise((resolve) => {
  process.once("SIGUSR2", () => resolve({ id, fence: String(lease.fencingToken) }));
  console.log("charging");
});`;
/** Next.js calls the handler of a route. */
const nextServer = `
const { createServer } = await import("node:http");
createServer(async (incoming, outgoing) => {
  if (incoming.method !== "POST") return outgoing.writeHead(404).end();
  const id = incoming.url.split("/")[2];
  const reply = await POST(new Request("http://localhost" + incoming.url), { params: Promise.resolve({ id }) });
  outgoing.writeHead(reply.status, Object.fromEntries(reply.headers)).end(await reply.text());
}).listen(process.env.PORT, () => process.once("SIGTERM", () => process.exit(0)));`;

onRedis("the quick start", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  test.each([
    ["express", ""],
    ["fastify", ""],
    ["nextjs", nextServer],
  ])("for %s answers 409 while the lock is held, and ends at SIGTERM", async (page, after) => {
    const port = await freePort();
    const program = await start(`quickstart/${page}.md`, charge, after, { PORT: String(port) });
    const post = (): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/orders/7/charge`, { method: "POST" });
    await listens(port);

    const first = post();
    await program.line("charging");
    const second = await post();
    expect(second.status).toBe(409);
    expect(await second.json()).toMatchObject({ code: "wait-timeout", key: "order:7" });

    program.child.kill("SIGUSR2");
    const receipt = await first;
    expect(receipt.status).toBe(200);
    expect(await receipt.json()).toEqual({ id: "7", fence: expect.stringMatching(/^\d+$/) as string });
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  });

  test("for a worker applies its jobs with rising fencing tokens, and ends", async () => {
    const before = `
      globalThis.jobs = async function* () { yield { account: 1 }; yield { account: 1 }; };
      globalThis.apply = (job, { fence }) => console.log("applied", String(fence));
      globalThis.retryLater = () => { throw new Error("unexpected"); };`;
    const program = await start("quickstart/worker.md", before);
    expect(await program.ended).toBe(0);
    const fences = program.lines.map((line) => BigInt(line.replace("applied ", "")));
    expect(fences).toHaveLength(2);
    expect(fences[1]! > fences[0]!).toBe(true);
  });

  test("for cron reports once in a period", async () => {
    const before = "globalThis.report = () => {};";
    const first = await start("quickstart/cron.md", before);
    expect(await first.ended).toBe(0);
    const second = await start("quickstart/cron.md", before);
    expect(await second.ended).toBe(0);
    expect([...first.lines, ...second.lines]).toEqual([
      "reported",
      expect.stringMatching(/^done by .+/) as string,
    ]);
  });

  test("of the installation makes a first lock", async () => {
    const program = await start("install.md", "");
    expect(await program.ended).toBe(0);
    expect(program.lines).toEqual([
      expect.stringMatching(/^held order:555 with the fencing token \d+$/) as string,
    ]);
  });

  interface Program {
    readonly child: ChildProcess;
    readonly lines: readonly string[];
    readonly ended: Promise<number | null>;
    /** Resolves when the program has printed this line. */
    line(text: string): Promise<void>;
  }

  async function start(
    page: string,
    before: string,
    after = "",
    env: NodeJS.ProcessEnv = {},
  ): Promise<Program> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-quickstart-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const [, block = ""] =
      /^```ts\n(.*?)^```$/ms.exec(await readFile(join(root, "docs", page), "utf8")) ?? [];
    const { code } = await transform(block, { loader: "ts", target: "node20" });
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "before.mjs"), before);
    await writeFile(join(folder, "program.mjs"), `import "./before.mjs";\n${code}\n${after}`);
    const child = spawn(process.execPath, [join(folder, "program.mjs")], {
      env: { ...process.env, NODE_OPTIONS: "", REDIS_URL: `redis://127.0.0.1:${server.port}`, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return observed(child);
  }
});

function observed(child: ChildProcess): {
  child: ChildProcess;
  lines: string[];
  ended: Promise<number | null>;
  line(text: string): Promise<void>;
} {
  const lines: string[] = [];
  const reader = createInterface(child.stdout!);
  reader.on("line", (text) => lines.push(text));
  const ended = Promise.all([once(child, "exit"), once(reader, "close")]).then(
    ([[code]]) => code as number | null,
  );
  return {
    child,
    lines,
    ended,
    async line(text) {
      while (!lines.includes(text)) await once(reader, "line");
    },
  };
}

/** Waits until the program listens. No page has a route for GET. */
function listens(port: number): Promise<void> {
  return waitUntil(
    () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        ({ status }) => status === 404,
        () => false,
      ),
    "the program listens",
  );
}
