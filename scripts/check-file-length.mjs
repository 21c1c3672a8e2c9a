// Warns of each hand-written file with more than 500 lines. The length is advice: a file is one noun with everything that belongs to it, and no
// file is split in order to satisfy a number.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const maxLines = 500;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tracked = execFileSync("git", ["ls-files", "-z", "*.ts", "*.tsx", "*.mts", "*.mjs", "*.lua", "*.c"], {
  cwd: root,
  encoding: "utf8",
});

for (const path of tracked.split("\0").filter((name) => name !== "" && !name.includes(".generated."))) {
  const lines = readFileSync(join(root, path), "utf8").split("\n").length - 1;
  if (lines > maxLines) {
    console.warn(`Warning: ${path} has ${lines} lines. Does the file have more than one noun?`);
  }
}
