import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";

import { killProcess, readOutput } from "../child-process.ts";

/** A worker in its own workerd, the runtime of Cloudflare's workers. */
export interface Workerd {
  readonly url: string;
  /** The last part of the worker's log. */
  readonly output: () => string;
  /** Kills the runtime. */
  stop(): Promise<void>;
}

export interface WorkerdOptions {
  /** The worker, one ES module. */
  readonly module: string;
  /** The texts in the worker's `env`. */
  readonly env: Readonly<Record<string, string>>;
  readonly compatibilityFlags: readonly string[];
}

/** The path of the program. The package has no types. */
const program = (createRequire(import.meta.url)("workerd") as { readonly default: string }).default;
const compatibilityDate = "2026-11-01";

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    child.kill("SIGKILL");
  }
});

/** Starts a worker on a free port of 127.0.0.1. It may open connections to every address. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-workerd-"));
  await writeFile(join(folder, "worker.js"), options.module);
  await writeFile(join(folder, "config.capnp"), configOf(options));
  const child = spawn(program, ["serve", "config.capnp", "--control-fd=3"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const output = readOutput(child);
  try {
    return {
      url: `http://127.0.0.1:${await portOf(child, output)}`,
      output,
      stop: async () => {
        await killProcess(child);
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await killProcess(child);
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** workerd reports each socket on file descriptor 3. */
async function portOf(child: ChildProcess, output: () => string): Promise<number> {
  const reported = once(child.stdio[3] as Readable, "data") as Promise<[Buffer]>;
  const ended = once(child, "exit").then(() => undefined);
  const [line] = (await Promise.race([reported, ended])) ?? [];
  if (line === undefined) {
    throw new Error(`workerd ended: ${output()}`);
  }
  return (JSON.parse(String(line)) as { port: number }).port;
}

function configOf({ env, compatibilityFlags }: WorkerdOptions): string {
  const bindings = Object.entries(env).map(
    ([name, text]) => `(name = ${quoted(name)}, text = ${quoted(text)})`,
  );
  return `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = ${quoted(compatibilityDate)},
  compatibilityFlags = [${compatibilityFlags.map(quoted).join(", ")}],
  bindings = [${bindings.join(", ")}],
);
`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
