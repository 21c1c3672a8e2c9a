import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";

import { build, type Plugin } from "esbuild";

const protocol = "packages/holdfast/src/drivers/redis/protocol";
const generated = `${protocol}/scripts.generated.ts`;

/**
 * Bundles the simulation with the library's sources, some of them changed. Types are not checked, so this takes a fraction of a second.
 * @param changed the changed files, by their paths below the root
 * @param target the path of the resulting program
 * @throws {Error} if a file has a syntax error
 */
export async function bundleSimulation(
  root: string,
  changed: ReadonlyMap<string, string>,
  target: string,
): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: ["verify/sim/main.ts"],
    outfile: target,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["@holdfast/source"],
    external: ["ioredis", "redis"],
    // The fake Redis finds its interpreter relative to this path, which must not depend on the target.
    define: { "import.meta.url": JSON.stringify(pathToFileURL(join(root, "verify/sim/main.ts")).href) },
    plugins: [replacing(root, withScripts(root, changed))],
    logLevel: "silent",
  });
}

function replacing(root: string, texts: ReadonlyMap<string, string>): Plugin {
  return {
    name: "changed-sources",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = texts.get(path.slice(root.length + 1));
        return contents === undefined ? undefined : { contents, loader: "ts" };
      });
    },
  };
}

/** The changed files, with a newly generated script module if a script of the protocol is changed. */
function withScripts(root: string, changed: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const scripts = [...changed].filter(([path]) => path.endsWith(".lua") && path.startsWith(protocol));
  if (scripts.length === 0) {
    return changed;
  }
  const folder = mkdtempSync(join(tmpdir(), "holdfast-scripts-"));
  try {
    cpSync(join(root, protocol, "lua"), join(folder, "lua"), { recursive: true });
    for (const [path, text] of scripts) {
      writeFileSync(join(folder, relative(protocol, path)), text);
    }
    const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/build-lua.mjs"), folder]);
    if (status !== 0) {
      throw new Error(`The scripts cannot be built: ${String(stderr)}`);
    }
    return new Map([...changed, [generated, readFileSync(join(folder, basename(generated)), "utf8")]]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
