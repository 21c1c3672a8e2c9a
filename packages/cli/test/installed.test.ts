import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onRedis } from "./support/servers.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const packages = ["holdfast", "server", "cli"];
let folder: string;

/** Installs the packed packages in an empty folder. Their declared dependencies come from this repository. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-installed-"));
  const modules = join(folder, "node_modules");
  for (const name of packages) {
    const source = join(root, "packages", name);
    execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], {
      cwd: source,
    });
    const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as {
      name: string;
      dependencies?: Record<string, string>;
    };
    const target = join(modules, manifest.name);
    await mkdir(target, { recursive: true });
    const [tarball] = (await readdir(folder)).filter((file) => file.endsWith(".tgz"));
    execFileSync("tar", ["-xzf", join(folder, tarball as string), "-C", target, "--strip-components=1"]);
    await rm(join(folder, tarball as string));
    for (const dependency of Object.keys(manifest.dependencies ?? {})) {
      if (!/^(@holdfast\/|holdfast$)/.test(dependency)) {
        await link(modules, dependency);
      }
    }
  }
}, 120_000);

afterAll(() => rm(folder, { recursive: true }));

async function link(modules: string, dependency: string): Promise<void> {
  await mkdir(dirname(join(modules, dependency)), { recursive: true });
  await symlink(join(root, "node_modules", dependency), join(modules, dependency), "junction").catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );
}

function holdfast(args: readonly string[], env: Record<string, string>): ReturnType<typeof spawn> {
  const program = join(folder, "node_modules", "@holdfast", "cli", "bin", "holdfast.cjs");
  const inherited = { ...process.env };
  delete inherited["NODE_OPTIONS"];
  return spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

onRedis("the installed packages", () => {
  test("serve locks on Redis, and run a command under a lock", async () => {
    const redis = await startRedis();
    const url = `redis://127.0.0.1:${redis.port}`;
    const service = holdfast(["serve", "--port", "0"], { HOLDFAST_URL: url });
    try {
      const lines = createInterface({ input: service.stdout as NodeJS.ReadableStream });
      const [address] = (await once(lines, "line")) as [string];
      const reply = await fetch(`${address}/v1/leases`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ key: "installed", ttlMs: 30_000 }),
      });
      expect(reply.status).toBe(201);
      for (const engine of [url, address]) {
        const refused = holdfast(["run", "-k", "installed", "--wait", "0", "-q", "--", "true"], {
          HOLDFAST_URL: engine,
        });
        expect(await once(refused, "exit"), engine).toEqual([75, null]);
        const done = holdfast(["run", "-k", "free", "--", "true"], { HOLDFAST_URL: engine });
        expect(await once(done, "exit"), engine).toEqual([0, null]);
      }
    } finally {
      service.kill("SIGTERM");
      await once(service, "exit");
      await redis.stop();
    }
  });
});

test("a clone that is not built names the command that builds it", async () => {
  const bundle = join(folder, "node_modules", "@holdfast", "cli", "dist");
  await rm(bundle, { recursive: true });
  expect(await once(holdfast(["--version"], {}), "exit")).toEqual([70, null]);
});
