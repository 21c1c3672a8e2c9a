import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { cached } from "./cache.ts";
import { runCommand } from "./command.ts";
import type { Runtime } from "./roster.ts";

/** The command of an installed runtime, to which the path of a program is appended. */
export type RuntimeCommand = readonly [program: string, ...args: string[]];

/** Installs a runtime from its package of npm. */
export async function provideRuntime({ name, spec }: Runtime): Promise<RuntimeCommand> {
  const folder = await cached(name, (incomplete) => installPackages(incomplete, { [name]: spec }));
  const installed = join(folder, "node_modules", name);
  if (name === "bun") {
    return [existing(join(installed, "bin"), ["bun.exe", "bun"]), "--no-install"];
  } else if (name === "deno") {
    return [existing(installed, ["deno", "deno.exe"]), "run", "--allow-all", "--quiet"];
  }
  return [existing(join(installed, "bin"), ["node", "node.exe"])];
}

/** Runs `npm install` for packages with their version ranges, in a folder of their own. */
export async function installPackages(
  folder: string,
  dependencies: Readonly<Record<string, string>>,
  settings: object = {},
): Promise<void> {
  await writeFile(
    join(folder, "package.json"),
    JSON.stringify({ private: true, ...settings, dependencies }, null, 2),
  );
  await runCommand("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock"], { folder });
}

function existing(folder: string, names: readonly string[]): string {
  const name = names.find((candidate) => existsSync(join(folder, candidate)));
  if (name === undefined) {
    throw new Error(`expected ${names.join(" or ")} in ${folder}`);
  }
  return join(folder, name);
}
