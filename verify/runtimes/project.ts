import { mkdir, mkdtemp, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { transform } from "esbuild";

import { runCommand } from "./command.ts";
import { installPackages } from "./runtime-programs.ts";
import type { Client, Format } from "./roster.ts";

/** A folder outside the repository, in which the packed package and one client library are installed. */
export interface Project {
  readonly client: Client;
  readonly folder: string;
  /** The exact version of the client library; undefined: that of its runtime. */
  readonly version: string | undefined;
}

export const root: string = fileURLToPath(new URL("../../..", import.meta.url));

/** The names of the program's files, in each format. */
export const programFiles: Readonly<Record<Format, string>> = {
  esm: "check.mjs",
  cjs: "check.cjs",
  ts: "check.ts",
};

/** A new folder of this run; the caller removes the folder. */
export function createWorkspace(): Promise<string> {
  return mkdtemp(join(tmpdir(), "holdfast-runtimes-"));
}

/** Runs `npm pack`, and returns the path of the package. */
export async function packLibrary(workspace: string): Promise<string> {
  const args = ["pack", "--workspace", "packages/holdfast", "--pack-destination", workspace, "--silent"];
  const name = (await runCommand("npm", args, { folder: root })).trim().split("\n").at(-1) as string;
  return join(workspace, name);
}

/** Installs the package and the client library from npm. */
export async function installProject(workspace: string, pack: string, client: Client): Promise<Project> {
  const folder = join(workspace, client.name);
  await mkdir(folder);
  const library = client.runtime === undefined ? { [client.library]: client.range } : {};
  const packages = { holdfast: `file:${pack}`, ...library };
  await installPackages(folder, packages, { type: "module" });
  return completed(folder, client);
}

/** Unpacks the package, and links the client library of this repository. Needs no network. */
export async function linkProject(workspace: string, pack: string, client: Client): Promise<Project> {
  const folder = join(workspace, client.name);
  const modules = join(folder, "node_modules");
  await mkdir(dirname(join(modules, client.library)), { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await runCommand("tar", ["-xzf", pack], { folder });
  await rename(join(folder, "package"), join(modules, "holdfast"));
  await symlink(join(root, "node_modules", client.local), join(modules, client.library), "junction");
  return completed(folder, client);
}

async function completed(folder: string, client: Client): Promise<Project> {
  const source = await readFile(join(root, "verify", "runtimes", "program.ts"), "utf8");
  const transformed = async (format: "esm" | "cjs"): Promise<string> => {
    const { code } = await transform(source, { loader: "ts", format, target: "es2022" });
    return code;
  };
  await writeFile(join(folder, programFiles.ts), source);
  await writeFile(join(folder, programFiles.esm), await transformed("esm"));
  await writeFile(join(folder, programFiles.cjs), await transformed("cjs"));
  const isPackage = client.runtime === undefined;
  const version = isPackage ? await versionOf(join(folder, "node_modules", client.library)) : undefined;
  return { client, folder, version };
}

/** The version of an installed package. */
export async function versionOf(folder: string): Promise<string> {
  const manifest = await readFile(join(folder, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Creates a project with the package and the types of Node, in which the compilers run. */
export async function typesProject(workspace: string, pack: string): Promise<string> {
  const folder = join(workspace, "types");
  await mkdir(folder);
  const nodeTypes = await versionOf(join(root, "node_modules", "@types", "node"));
  await installPackages(folder, { holdfast: `file:${pack}`, "@types/node": nodeTypes });
  return folder;
}
