// Assembles the lua/*.lua of each folder with scripts into one committed module. Each script has its SHA-1, by which Redis identifies it.
//
// `node scripts/build-lua.mjs [folder]` writes scripts.generated.ts. With `--check` it exits with 1 if the committed module is stale.
//
// A line `--- @include "folder/name.lua"` is replaced by the text of that file, one level deep. Files in folders are fragments,
// which can be included and are not exported. The module omits comments and indentation, so strings over several lines and long
// brackets are errors.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const includeLine = /^\s*---\s*@include\s+"([^"]*)"\s*$/;
const foldersWithScripts = [
  "packages/holdfast/src/drivers/redis/layouts",
  "packages/holdfast/src/drivers/redis/protocol",
  "packages/holdfast/src/fencing",
  "packages/holdfast/src/compat/redis-semaphore",
];
const fileName = /^[a-z][a-z0-9]*(-[a-z0-9]+)*\.lua$/;

main(process.argv.slice(2));

function main(args) {
  const checkOnly = args.includes("--check");
  const repository = join(dirname(fileURLToPath(import.meta.url)), "..");
  const named = args.filter((arg) => !arg.startsWith("--"));
  const folders = named.length > 0 ? named : foldersWithScripts.map((folder) => join(repository, folder));
  try {
    for (const folder of folders) build(folder, checkOnly);
  } catch (error) {
    console.error(`build-lua: ${error.message}`);
    process.exitCode = 1;
  }
}

function build(folder, checkOnly) {
  const target = join(folder, "scripts.generated.ts");
  const wanted = render(assembleAll(join(folder, "lua")));
  if (existsSync(target) && readFileSync(target, "utf8") === wanted) return;
  if (checkOnly) throw new Error(`${relative(process.cwd(), target)} is stale: run \`npm run lua\``);
  writeFileSync(target, wanted);
}

function assembleAll(folder) {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".lua")) : [];
  for (const file of files) {
    if (!fileName.test(file)) throw new Error(`${file}: expected a name like acquire-mutex.lua`);
  }
  return files
    .sort()
    .map((file) => ({ name: file.slice(0, -".lua".length), source: shrink(file, include(folder, file)) }));
}

function include(folder, file) {
  return readLines(folder, file).flatMap((line) => {
    const included = includeLine.exec(line)?.[1];
    if (included === undefined) return [line];
    if (!existsSync(join(folder, included)))
      throw new Error(`${file}: cannot include ${included}: no such file`);
    const lines = readLines(folder, included);
    if (lines.some((inner) => includeLine.test(inner))) {
      throw new Error(`${file}: ${included} includes another file; includes go one level deep`);
    }
    return lines;
  });
}

function readLines(folder, file) {
  return readFileSync(join(folder, file), "utf8").split(/\r?\n/);
}

function shrink(file, lines) {
  const blockComment = lines.find((line) => /--\[=*\[/.test(line));
  if (blockComment) throw new Error(`${file}: block comments are not supported: ${blockComment.trim()}`);
  const code = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("--"));
  const spanning = code.find((line) => line.endsWith("\\") || /\[=*\[/.test(line));
  if (spanning) throw new Error(`${file}: strings over several lines are not supported: ${spanning}`);
  return code.map((line) => `${line}\n`).join("");
}

function render(scripts) {
  const header = [
    "// Generated from lua/*.lua by scripts/build-lua.mjs. Do not edit.",
    'import type { Script } from "./script.ts";',
  ];
  return [...header, ...scripts.map(renderScript)].join("\n") + "\n";
}

function renderScript({ name, source }) {
  const sha1 = createHash("sha1").update(source).digest("hex");
  const constant = `${name.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase())}Script`;
  const fields = Object.entries({ name, sha1, source }).map(
    ([key, value]) => `${key}: ${JSON.stringify(value)}`,
  );
  return `\nexport const ${constant}: Script = { ${fields.join(", ")} };`;
}
