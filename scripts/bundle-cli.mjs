// Makes the command line one file, as its start is part of every `holdfast run`: nothing of it runs before it is needed, and one
// file is loaded faster than many. From the sources: it wants no build.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "packages", "cli");
const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Writes the command line's bundle into a folder, beside other files of it; `main.cjs` starts it there. */
export async function bundleCli(outdir = join(folder, "dist", "bundle")) {
  const { metafile } = await build({
    ...common,
    metafile: true,
    entryPoints: ["src/main.ts"],
    outfile: join(outdir, "program.cjs"),
    conditions: ["@holdfast/source"],
    // node-redis is used where somebody has it and asks for it; the service is a package of its own.
    external: ["redis", "@holdfast/server"],
    // Node 20 forgets how to import where what was compiled is kept; what these two are can be required.
    supported: { "dynamic-import": false },
    define: { holdfastVersion: JSON.stringify(version) },
    plugins: [{ name: "late parts", setup: lateParts }],
  });
  const id = createHash("sha256")
    .update(readFileSync(join(outdir, "program.cjs")))
    .digest("hex");
  await build({
    ...common,
    entryPoints: ["src/start.ts"],
    outfile: join(outdir, "main.cjs"),
    external: ["./program.cjs"],
    define: { programId: JSON.stringify(id.slice(0, 32)) },
    banner: { js: "#!/usr/bin/env node" },
  });
  await chmod(join(outdir, "main.cjs"), 0o755);
  await writeFile(join(outdir, "LICENSES.txt"), licencesOf(Object.keys(metafile.inputs)));
}

const common = {
  absWorkingDir: folder,
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node20.19",
  minify: true,
  legalComments: "none", // the licences of all that is in it stand beside it
  logLevel: "warning",
};

/** What the makers of the packages in the bundle want to be told with it. */
function licencesOf(inputs) {
  const packages = new Set(
    inputs.flatMap((path) => /^(?!late:).*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  return [...packages]
    .sort((a, b) => a.localeCompare(b))
    .map((path) => {
      const one = join(folder, path);
      const { name, version, license } = JSON.parse(readFileSync(join(one, "package.json"), "utf8"));
      const file = readdirSync(one).find((entry) => /^licen[cs]e/i.test(entry));
      const text = file === undefined ? "" : `\n${readFileSync(join(one, file), "utf8").trim()}\n`;
      return `${name} ${version} (${license})\n${text}`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

/** What others' code loads at its start and most runs never use: loaded when something of it is asked for. */
function lateParts(build) {
  const client = join("node_modules", "ioredis", "built");
  build.onResolve({ filter: /^(node:)?(tls|dns|assert|child_process)$/ }, ({ path, importer }) =>
    importer.includes("node_modules") ? { path, namespace: "late" } : undefined,
  );
  build.onResolve({ filter: /^\.\/cluster$/ }, ({ importer, resolveDir }) =>
    importer.includes(client)
      ? { path: join(resolveDir, "cluster", "index.js"), namespace: "late" }
      : undefined,
  );
  build.onLoad({ filter: /.*/, namespace: "late" }, ({ path }) => ({
    resolveDir: folder,
    contents: path.includes(client)
      ? `exports.default = ${late(`require(${JSON.stringify(path)}).default`)};`
      : `module.exports = ${late(`require(${JSON.stringify(path)})`)};`,
  }));
}

/** Stands for a module, a function or a class that is loaded at its first use. */
function late(loaded) {
  return `new Proxy(function () {}, {
    get: (_, name) => (${loaded})[name],
    apply: (_, self, args) => Reflect.apply(${loaded}, self, args),
    construct: (_, args) => Reflect.construct(${loaded}, args),
  })`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundleCli();
}
