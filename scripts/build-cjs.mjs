// Bundles each package with `require` in its exports for CommonJS into its `dist/cjs`, from its ES modules. Node loads the ES modules for
// `require` too (condition `module-sync`), so a process has one copy. The bundle is for tools that cannot require ES modules, such as Jest.

import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { rolldown } from "rolldown";

const packages = join(dirname(fileURLToPath(import.meta.url)), "..", "packages");

for (const name of readdirSync(packages)) {
  const folder = join(packages, name);
  const { exports = {}, peerDependencies = {} } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const targets = Object.entries(exports).filter(([, target]) => target.require !== undefined);
  if (targets.length > 0) await bundlePackage(folder, targets, Object.keys(peerDependencies));
}

async function bundlePackage(folder, targets, libraries) {
  const output = join(folder, "dist", "cjs");
  /** The names of the entry points, and the ES module of each. */
  const modules = Object.fromEntries(
    targets.map(([, { import: esm, require: cjs }]) => [
      relative(output, join(folder, cjs.default)).replace(/\.cjs$/, ""),
      join(folder, esm.default),
    ]),
  );

  await rm(output, { recursive: true, force: true });
  const bundle = await rolldown({
    input: modules,
    platform: "node",
    external: [/^node:/, new RegExp(`^(${libraries.join("|")})(/|$)`)],
  });
  await bundle.write({
    dir: output,
    format: "cjs",
    exports: "named",
    entryFileNames: "[name].cjs",
    chunkFileNames: "shared/[name].cjs",
    dynamicImportInCjs: false, // Jest cannot run `import()` in CommonJS
  });
  for (const [name, module] of Object.entries(modules)) {
    const file = join(output, `${name}.d.cts`);
    const path = relative(dirname(file), module).replaceAll("\\", "/");
    await writeFile(file, await declarationsOf(module, JSON.stringify(path)));
  }
}

/** The types of the ES module under the same names, so that both formats have the same types. */
async function declarationsOf(module, specifier) {
  const from = `${specifier} with { "resolution-mode": "import" }`;
  const values = Object.entries(await import(pathToFileURL(module)));
  return [
    `import type * as esm from ${from};`,
    `export type * from ${from};`,
    ...values.flatMap(([name, value]) => {
      const local = name === "default" ? "exported" : name;
      return [
        `declare const ${local}: typeof esm.${name};`,
        ...(isClass(value) ? [`type ${local} = esm.${name};`] : []),
        `export { ${local === name ? name : `${local} as ${name}`} };`,
      ];
    }),
    "",
  ].join("\n");
}

function isClass(value) {
  return typeof value === "function" && Function.prototype.toString.call(value).startsWith("class");
}
