// Bundles the web console into `packages/server/dist/console`, so that the published service contains it. The result is a folder of
// static files: `index.html`, and assets with a hash in their names. Each has a brotli form, and `manifest.json` lists all.
// Fails if the scripts and styles exceed the budget.

import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { build } from "esbuild";

const budgetKb = 70;
const bytesPerKb = 1000;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "packages", "console");

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Writes the console into a folder, and returns its size in kB: scripts and styles, compressed by gzip. */
export async function buildConsole(outdir = join(root, "packages", "server", "dist", "console")) {
  const assets = await bundled();
  const icon = await readFile(join(folder, "static", "icon.svg"));
  assets.set("icon.svg", { name: `assets/${hashed("icon.svg", icon)}`, contents: icon });
  const page = withAssets(await readFile(join(folder, "index.html"), "utf8"), assets);
  const files = [
    ...[...assets.values()].map((asset) => ({ ...asset, immutable: true })),
    { name: "index.html", contents: Buffer.from(page), immutable: false },
  ];
  await rm(outdir, { recursive: true, force: true });
  await mkdir(join(outdir, "assets"), { recursive: true });
  const manifest = {};
  for (const { name, contents, immutable } of files) {
    await writeFile(join(outdir, name), contents);
    await writeFile(join(outdir, `${name}.br`), compressed(contents));
    manifest[name] = {
      type: types[extname(name)],
      bytes: contents.length,
      immutable,
      etag: hashOf(contents),
    };
  }
  await writeFile(join(outdir, "manifest.json"), `${JSON.stringify({ files: manifest }, undefined, 2)}\n`);
  return sizeOf([...assets.values()].filter(({ name }) => !name.endsWith(".svg")));
}

/** The scripts and styles by the name that `index.html` has for them. */
async function bundled() {
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: { main: "src/main.tsx", theme: "src/early.ts" },
    outdir: "dist",
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    platform: "browser",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { DOCS_URL: JSON.stringify(await docsUrl()) },
    legalComments: "inline",
    logLevel: "warning",
    plugins: [{ name: "one preact", setup: onePreact }],
  });
  return new Map(
    outputFiles.map(({ path, contents }) => {
      const bytes = Buffer.from(contents);
      return [basename(path), { name: `assets/${hashed(basename(path), bytes)}`, contents: bytes }];
    }),
  );
}

/** The address of the documentation, for links. */
async function docsUrl() {
  const { repository } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return `${repository.url.replace(/^git\+|\.git$/g, "")}/blob/main/docs`;
}

/** Resolves every import of Preact from the console, because the repository has a second version for another package. */
function onePreact(build) {
  build.onResolve({ filter: /^preact(\/|$)/ }, ({ path, kind, pluginData }) =>
    pluginData === "own" ? undefined : build.resolve(path, { kind, resolveDir: folder, pluginData: "own" }),
  );
}

function withAssets(page, assets) {
  return page.replace(/(href|src)="\.\/([\w.-]+)"/g, (_, attribute, name) => {
    const asset = assets.get(name);
    if (asset === undefined) throw new Error(`index.html names ${name}, and the bundle has no such file`);
    return `${attribute}="./${asset.name}"`;
  });
}

function hashed(name, contents) {
  const extension = extname(name);
  return `${basename(name, extension)}-${hashOf(contents).slice(0, 10)}${extension}`;
}

function hashOf(contents) {
  return createHash("sha256").update(contents).digest("hex").slice(0, 32);
}

function compressed(contents) {
  return brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
}

function sizeOf(assets) {
  return assets.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0) / bytesPerKb;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const kb = await buildConsole();
  if (kb > budgetKb) {
    console.error(`The console has ${kb.toFixed(1)} kB gzipped, and its budget is ${budgetKb} kB.`);
    process.exitCode = 1;
  }
}
