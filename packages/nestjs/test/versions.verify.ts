import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { limitMs, endProcess, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";

import { onRedis } from "../../holdfast/test/support/servers.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const jobs = ["above", "below"];

onRedis("two processes of an application", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  test.concurrent.for([
    ["10", "commonjs", "peers/nest10/node_modules"],
    ["11", "commonjs", "node_modules"],
    ["12", "module", "peers/nest12/node_modules"],
  ] as const)(
    "of Nest %s (%s) exclude each other, run each fire once, report their health, and release at shutdown",
    async ([version, type, modules], context) => {
      const folder = await compiledApp(context, type, join(root, modules, "@nestjs"));
      const { version: installed } = JSON.parse(
        await readFile(join(folder, "node_modules/@nestjs/core/package.json"), "utf8"),
      ) as { version: string };
      expect(installed.split(".")[0]).toBe(version);

      const url = `redis://127.0.0.1:${server.port}?prefix=${version}:`;
      const [first, second] = [new App(context, folder, url), new App(context, folder, url)];
      await Promise.all([first.line(/^ready/), second.line(/^ready/)]);
      expect(first.lines).toContainEqual(expect.stringMatching(/^tested order:0 \d+$/));

      first.send("pay 7");
      await first.line(/^paying 7/);
      second.send("pay 7");
      expect(await second.line(/^(refused|paying 7)/)).toBe("refused wait-timeout");
      first.send("finish");
      const [, earlier] = (await first.line(/^paid/)).split("order:7 ");
      second.send("pay 7");
      await second.line(/^paying 7/);
      second.send("finish");
      const [, later] = (await second.line(/^paid/)).split("order:7 ");
      expect(BigInt(later as string)).toBeGreaterThan(BigInt(earlier as string));

      first.send("health");
      expect(await first.line(/"usable"/)).toMatch(/^ok .*"status":"up".*"usable":1/);

      await waitUntil(
        () => firesOf(first, second).complete.length >= 2 * jobs.length,
        "two fires of each job",
        limitMs(20_000),
      );
      const { runs, complete } = firesOf(first, second);
      expect(complete.map((fire) => runs[fire])).toEqual(complete.map(() => 1));

      first.send("pay 8");
      await first.line(/^paying 8/);
      first.child.kill("SIGTERM");
      await first.ended;
      second.send("pay 8"); // waits for 300 ms, and the TTL is 30 s
      expect(await second.line(/^(refused|paying 8)/)).toBe("paying 8");
    },
  );

  test("of which the server is away report it", async (context) => {
    const folder = await compiledApp(context, "commonjs", join(root, "node_modules/@nestjs"));
    const app = new App(context, folder, "redis://127.0.0.1:1?commandTimeoutMs=300");
    await app.line(/^ready/);
    app.send("health");
    expect(await app.line(/"usable"/)).toMatch(/^error .*"status":"down".*"usable":0/);
  });
});

/** A folder with the application, compiled, and with the packages as npm installs them. */
async function compiledApp(
  { onTestFinished }: TestContext,
  type: "commonjs" | "module",
  nest: string,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-nest-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const modules = join(folder, "node_modules");
  const packed = join(modules, "@holdfast", "nestjs");
  await mkdir(join(modules, "@types"), { recursive: true });
  for (const name of ["dist", "package.json"]) {
    await cp(join(root, "packages", "nestjs", name), join(packed, name), { recursive: true });
  }
  await symlink(nest, join(modules, "@nestjs"));
  for (const name of ["holdfast", "reflect-metadata", "rxjs", "@types/node"]) {
    await symlink(join(root, "node_modules", name), join(modules, name));
  }
  const compilerOptions = {
    strict: true,
    skipLibCheck: true,
    module: "NodeNext",
    target: "ES2022",
    lib: ["ES2023", "ESNext.Disposable"],
    types: ["node"],
    rootDir: ".",
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  await writeFile(join(folder, "package.json"), JSON.stringify({ type }));
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  await cp(join(root, "packages", "nestjs", "test", "app", "main.ts"), join(folder, "main.ts"));
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", folder], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(await readFile(join(folder, "main.js"), "utf8")).toMatch(
    type === "module" ? /^import /m : /require\("@nestjs\/core"\)/,
  );
  return folder;
}

class App {
  readonly lines: string[] = [];
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;

  constructor({ onTestFinished }: TestContext, folder: string, url: string) {
    this.child = spawn(process.execPath, ["main.js", url], {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.ended = once(this.child, "exit");
    createInterface({ input: this.child.stdout! }).on("line", (line) => this.lines.push(line));
    onTestFinished(() => endProcess(this.child));
  }

  send(command: string): void {
    this.child.stdin?.write(`${command}\n`);
  }

  /** The next line that matches, and that no earlier call has returned. */
  async line(pattern: RegExp): Promise<string> {
    const found = (): number => this.lines.findIndex((line) => pattern.test(line));
    await waitUntil(() => found() >= 0, `a line ${String(pattern)}`, 30_000);
    return this.lines.splice(found(), 1)[0] as string;
  }
}

/** How often each fire ran, and the fires of which both processes have reported a run or a skip. */
function firesOf(...apps: readonly App[]): { runs: Record<string, number>; complete: string[] } {
  const runs: Record<string, number> = {};
  const reports: Record<string, number> = {};
  for (const line of apps.flatMap(({ lines }) => lines)) {
    const [, result, fire] = /^(ran|skipped) (.+)$/.exec(line) ?? [];
    if (fire !== undefined) {
      reports[fire] = (reports[fire] ?? 0) + 1;
      runs[fire] = (runs[fire] ?? 0) + (result === "ran" ? 1 : 0);
    }
  }
  return { runs, complete: Object.keys(reports).filter((fire) => reports[fire] === 2) };
}
