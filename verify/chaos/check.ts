import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { judge } from "./judge/judge.ts";

// Judges the history of a run, of one engine or of all: `node verify/dist/chaos/check.js <folder>`.

const [folder] = process.argv.slice(2);

if (folder === undefined || folder === "--help") {
  process.stderr.write("Usage: node verify/dist/chaos/check.js <folder of a run>\n");
  process.exitCode = folder === undefined ? 2 : 0;
} else {
  await check(folder);
}

async function check(folder: string): Promise<void> {
  const folders = [folder, ...subfolders(folder)].filter((each) => existsSync(join(each, "plan.json")));
  if (folders.length === 0) {
    process.stderr.write(`Expected the folder of a run, with a plan.json in it or below, got "${folder}"\n`);
    process.exitCode = 2;
    return;
  }
  for (const each of folders) {
    const { violations, summary } = await judge(each);
    process.stdout.write(`${summary}\n`);
    if (violations.length > 0) {
      process.exitCode = 1;
    }
  }
}

function subfolders(given: string): string[] {
  if (!existsSync(given)) {
    return [];
  }
  return readdirSync(given, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(given, name));
}
