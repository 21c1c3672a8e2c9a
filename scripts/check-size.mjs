// Compares the size of the library with the number in README.md, and exits 1 if the difference is more than 2 %. The size is that of
// `createLocks` and `redis` in one minified ES module, compressed by gzip. Needs the built package.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const tolerance = 0.02;
const bytesPerKb = 1000;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

const program = `
  export { createLocks } from "holdfast";
  export { redis } from "holdfast/redis";
`;
const { outputFiles } = await build({
  stdin: { contents: program, resolveDir: root },
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  platform: "node",
  target: "node20",
});
const kb = gzipSync(outputFiles[0].contents, { level: 9 }).length / bytesPerKb;

const [, stated] = /(\d+) kB gzipped/.exec(readFileSync(join(root, "README.md"), "utf8")) ?? [];
if (stated === undefined || Math.abs(kb - stated) > stated * tolerance) {
  console.error(
    `createLocks and redis have ${kb.toFixed(1)} kB gzipped, and README.md says ${stated} kB. Reduce the size, or change README.md.`,
  );
  process.exitCode = 1;
}
