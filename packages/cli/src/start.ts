import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import module from "node:module";
import { basename, join } from "node:path";
import { Script } from "node:vm";

// This file is bundled as CommonJS, separate from the program, whose file name changes with its content.
declare const require: NodeJS.Require;
declare const __dirname: string;
declare const programId: string;

/** The arguments of a CommonJS module. */
type Wrapped = (
  exports: object,
  require: NodeJS.Require,
  module: object,
  file: string,
  folder: string,
) => void;

start();

/** Runs the program with cached compiled code. Node 22.8 and newer keep that cache, and this file keeps it for older versions. */
function start(): void {
  const folder = ownCache();
  const enable = (module as { enableCompileCache?: (folder: string) => unknown }).enableCompileCache;
  if (folder === undefined || enable !== undefined) {
    if (folder !== undefined) enable?.(folder);
    require(join(__dirname, "program.cjs"));
  } else {
    runCached(folder);
  }
}

/**
 * The cache is in the user's own folder, because other users may write to the system's temporary folder, and cached code is executed. A
 * cache has the code that one command used. `run` has a cache of its own, because its start must be fast.
 */
function ownCache(): string | undefined {
  const { HOME, XDG_CACHE_HOME } = process.env;
  const folder = XDG_CACHE_HOME ?? (HOME === undefined || HOME === "" ? "" : join(HOME, ".cache"));
  return folder === "" ? undefined : join(folder, "holdfast", process.argv[2] === "run" ? "run" : "others");
}

function runCached(folder: string): void {
  const path = join(__dirname, "program.cjs");
  const cached = join(folder, `${programId}-${process.version}-${process.arch}`);
  const cachedData = readCached(cached);
  const source = `(function (exports, require, module, __filename, __dirname) {${readFileSync(path, "latin1")}\n})`;
  const script = new Script(source, {
    filename: path,
    ...(cachedData !== undefined && { cachedData }),
  });
  if (cachedData === undefined || script.cachedDataRejected === true) {
    // At the exit, all code of this run is compiled.
    process.once("exit", () => {
      writeCache(script, folder, cached);
    });
  }
  const exports = {};
  (script.runInThisContext() as Wrapped)(exports, module.createRequire(path), { exports }, path, __dirname);
}

function readCached(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Writes the cache atomically. If the cache cannot be written, the next start takes as long as this one. */
function writeCache(script: Script, folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const part = `${path}.${process.pid}`;
    writeFileSync(part, script.createCachedData(), { mode: 0o600 });
    renameSync(part, path);
    for (const name of readdirSync(folder)) {
      // A cache of another version of Holdfast or Node.
      if (/^[0-9a-f]{32}-v/.test(name) && name !== basename(path))
        rmSync(join(folder, name), { force: true });
    }
  } catch {
    // The cache only saves time.
  }
}
