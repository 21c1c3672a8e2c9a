import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

type Environment = Readonly<Record<string, string>>;

const compiler = "cc";

/** Compiles a library that is preloaded into a server. @returns its path */
export function compileShim(name: "clock-shim" | "sync-shim", folder: string): string {
  const source = fileURLToPath(new URL(`../${name}.c`, import.meta.url));
  const library = join(folder, `${name}.so`);
  const compiled = spawnSync(compiler, ["-shared", "-fPIC", "-O2", "-o", library, source], {
    encoding: "utf8",
  });
  if (compiled.status !== 0) {
    throw new Error(`${compiler} did not compile ${source}: ${compiled.error?.message ?? compiled.stderr}`);
  }
  return library;
}

/** The variables of several libraries. All of them are preloaded. */
export function joinedEnv(...environments: readonly (Environment | undefined)[]): Environment {
  const preloaded = environments.flatMap((one) => one?.["LD_PRELOAD"] ?? []);
  return Object.assign(
    {},
    ...environments,
    preloaded.length > 0 && { LD_PRELOAD: preloaded.join(":") },
  ) as Environment;
}
