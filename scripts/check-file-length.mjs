// Lists each hand-written file with more than 300 lines, and exits 1 if there is one.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const maxLines = 300;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tracked = execFileSync("git", ["ls-files", "-z", "*.ts", "*.tsx", "*.mts", "*.mjs", "*.lua", "*.c"], {
  cwd: root,
  encoding: "utf8",
});

for (const path of tracked.split("\0").filter((name) => name !== "" && !name.includes(".generated."))) {
  const lines = readFileSync(join(root, path), "utf8").split("\n").length - 1;
  if (lines > maxLines) {
    console.error(`${path} has ${lines} lines. The limit is ${maxLines}: split the file by topic.`);
    process.exitCode = 1;
  }
}
