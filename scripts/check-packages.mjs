// Checks every public package in its published form: manifest, exports, types. It needs a build.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const env = {
  ...process.env,
  PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env["PATH"]}`,
};

for (const name of readdirSync(join(root, "packages"))) {
  const folder = join(root, "packages", name);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (manifest.private) continue;
  check(folder, "publint", ["--strict"]);
  check(folder, "attw", ["--pack", ".", "--profile", manifest.main === undefined ? "esm-only" : "strict"]);
}

function check(folder, command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    env,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (status === 0) return;
  console.error(`${folder}: ${command} found an error\n${error ?? stdout + stderr}`);
  process.exitCode = 1;
}
