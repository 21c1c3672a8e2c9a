// Copies docs/ and its images into the sources of the site. Links to other files of the repository become links to its address.
// `<!-- chart: SUITE -->` becomes the chart of the suite, which is drawn from its record.

import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";

import { drawSuite } from "../bench/dist/report/charts/draw.js";
import { readRecords } from "../bench/dist/report/record.js";
import { contents } from "./contents.mjs";
import { home } from "./home.mjs";
import { docs, pages, repository, results } from "./settings.mjs";

const chartFolder = "images/bench";

/** @throws {Error} a page of the contents that is missing, or a page of docs/ that the contents lack */
export async function copyPages() {
  const listed = contents.flatMap(({ items }) => items.map(([path]) => `${path}.md`));
  const found = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith(".md"));
  const different = [...listed, ...found].filter((path) => !listed.includes(path) || !found.includes(path));
  if (different.length > 0) throw new Error(`site/contents.mjs and docs/ differ in ${different.join(", ")}`);
  const charts = await writeCharts();
  for (const path of found) {
    const text = await readFile(join(docs, path), "utf8");
    await mkdir(dirname(join(pages, path)), { recursive: true });
    await writeFile(join(pages, path), withCharts(withLinks(text, path), { path, charts }));
  }
  await cp(join(docs, "images"), join(pages, "images"), { recursive: true });
  // JSON is YAML too.
  await writeFile(join(pages, "index.md"), `---\n${JSON.stringify(home)}\n---\n`);
}

/** @returns the titles of the charts by their suites */
async function writeCharts() {
  const records = await readRecords(results);
  await mkdir(join(pages, chartFolder), { recursive: true });
  for (const record of records) {
    await writeFile(join(pages, chartFolder, `${record.suite}.svg`), drawSuite(record));
  }
  return new Map(records.map(({ suite, title }) => [suite, title]));
}

/** @throws {Error} a chart of a suite without a record */
function withCharts(text, { path, charts }) {
  return text.replace(/<!-- chart: (\S+) -->/g, (_, suite) => {
    if (!charts.has(suite)) throw new Error(`docs/${path} has the chart ${suite}, which bench/results lacks`);
    return `![${charts.get(suite)}](${posix.relative(posix.dirname(path), `${chartFolder}/${suite}.svg`)})`;
  });
}

function withLinks(text, path) {
  return text.replace(/\]\((\.[^)\s]*)\)/g, (link, target) => {
    const file = posix.join("docs", posix.dirname(path), target);
    return file.startsWith("docs/") ? link : `](${repository}/blob/main/${file})`;
  });
}
