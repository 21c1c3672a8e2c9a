// Copies docs/ and its images into the sources of the site. Links to other files of the repository become links to its address.

import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";

import { contents } from "./contents.mjs";
import { home } from "./home.mjs";
import { docs, pages, repository } from "./settings.mjs";

/** @throws {Error} a page of the contents that is missing, or a page of docs/ that the contents lack */
export async function copyPages() {
  const listed = contents.flatMap(({ items }) => items.map(([path]) => `${path}.md`));
  const found = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith(".md"));
  const different = [...listed, ...found].filter((path) => !listed.includes(path) || !found.includes(path));
  if (different.length > 0) throw new Error(`site/contents.mjs and docs/ differ in ${different.join(", ")}`);
  for (const path of found) {
    const text = await readFile(join(docs, path), "utf8");
    await mkdir(dirname(join(pages, path)), { recursive: true });
    await writeFile(join(pages, path), withLinks(text, path));
  }
  await cp(join(docs, "images"), join(pages, "images"), { recursive: true });
  // JSON is YAML too.
  await writeFile(join(pages, "index.md"), `---\n${JSON.stringify(home)}\n---\n`);
}

function withLinks(text, path) {
  return text.replace(/\]\((\.[^)\s]*)\)/g, (link, target) => {
    const file = posix.join("docs", posix.dirname(path), target);
    return file.startsWith("docs/") ? link : `](${repository}/blob/main/${file})`;
  });
}
