// Finds links of the built site that lead to no page, no file, or no heading of their page.

import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";

import { base, out } from "./settings.mjs";

/** @returns `page: link` for each dead link */
export async function deadLinks() {
  const files = (await readdir(out, { recursive: true })).filter((path) => path.endsWith(".html"));
  const texts = new Map();
  for (const file of files) texts.set(file, await readFile(join(out, file), "utf8"));
  const ids = new Map([...texts].map(([file, text]) => [file, idsOf(text)]));
  return [...texts].flatMap(([file, text]) =>
    linksOf(text)
      .filter((link) => !leads(link, file, ids))
      .map((link) => `${file}: ${link}`),
  );
}

function leads(link, file, ids) {
  const [path, fragment] = link.split("#");
  const target = path === "" ? file : fileOf(path, file);
  if (!ids.has(target)) return path !== "" && existsSync(join(out, target));
  return fragment === undefined || fragment === "" || ids.get(target).has(decodeURIComponent(fragment));
}

function fileOf(path, file) {
  const whole = path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(file), path);
  const name = decodeURIComponent(whole);
  if (name === "" || name.endsWith("/")) return `${name}index.html`;
  return /\.\w+$/.test(name) ? name : `${name}.html`;
}

function linksOf(text) {
  return [...text.matchAll(/<a [^>]*href="([^"]*)"/g)]
    .map(([, link]) => link.replaceAll("&amp;", "&"))
    .filter((link) => !/^(\w+:|\/\/)/.test(link));
}

function idsOf(text) {
  return new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id));
}
