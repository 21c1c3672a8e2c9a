// Bundles the command line into one file from its sources, without a build. Its start is part of every `holdfast run`, and one file
// loads faster than many. Code that most runs never need is loaded at its first use.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "packages", "cli");
const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Writes the bundle into a folder and keeps the folder's other files. `main.cjs` is the program. */
export async function bundleCli(outdir = join(folder, "dist", "bundle")) {
  const { metafile } = await build({
    ...common,
    metafile: true,
    entryPoints: ["src/main.ts"],
    outfile: join(outdir, "program.cjs"),
    conditions: ["@holdfast/source"],
    external: ["redis", "pg-native"], // optional packages
    // In Node 20, code from the compile cache cannot call `import()`. The external packages can be loaded with `require` instead.
    supported: { "dynamic-import": false },
    define: { holdfastVersion: JSON.stringify(version) },
    plugins: [
      { name: "separate service", setup: separateService },
      { name: "late parts", setup: lateParts },
    ],
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
  legalComments: "none", // LICENSES.txt contains the licences of all bundled packages
  logLevel: "warning",
};

/** The licences of the bundled packages. */
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

/** The service is a package of its own. The bundle contains only its doctor, with the client libraries. */
function separateService(build) {
  build.onResolve({ filter: /^@holdfast\/server$/ }, ({ path }) => ({ path, external: true }));
}

/** Delays modules that dependencies load at their start and most runs never use, until their first use. */
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

/** A proxy for a module, a function or a class that is loaded at its first use. */
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
