// Writes the site's pages as text beside their HTML: `<page>.md`, and llms.txt with the list of all pages.

import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { contents } from "./contents.mjs";
import { base, out, pages } from "./settings.mjs";

export async function writeTexts(entries) {
  await cp(pages, out, { recursive: true });
  const lines = [
    "# Holdfast",
    "",
    "> Distributed locks for TypeScript on Redis, Redlock, PostgreSQL, MySQL, etcd, ZooKeeper and Nacos, with fencing tokens and fair queues",
  ];
  for (const { text, items } of contents) {
    lines.push("", `## ${text}`, "");
    for (const [path] of items) lines.push(await line(path));
  }
  lines.push("", "## Reference", "", ...entries.map((entry) => `- [${entry}](${base}reference/${entry}.md)`));
  await writeFile(join(out, "llms.txt"), `${lines.join("\n")}\n`);
}

async function line(path) {
  const text = await readFile(join(pages, `${path}.md`), "utf8");
  const [, title] = /^# (.+)$/m.exec(text);
  return `- [${title}](${base}${path}.md)`;
}
