// Writes the reference: a page of Markdown for each published entry point, from its types and their comments.

import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { Application } from "typedoc";

import { pages, root } from "./settings.mjs";

/** The packages whose entry points have pages. */
const packages = ["holdfast", "nestjs"].map((folder) => join(root, "packages", folder));
const reference = join(pages, "reference");

/** @returns the names of the entry points */
export async function writeReference() {
  const entries = packages.flatMap(entriesOf);
  const application = await Application.bootstrapWithPlugins({
    plugin: ["typedoc-plugin-markdown"],
    entryPoints: entries.map(({ source }) => source),
    tsconfig: join(root, "tsconfig.json"),
    readme: "none",
    out: reference,
    router: "module",
    entryFileName: "index",
    mergeReadme: false,
    hidePageHeader: true,
    hideBreadcrumbs: true,
    excludePrivate: true,
    excludeInternal: true,
    useCodeBlocks: true,
    useHTMLAnchors: true,
    expandObjects: true,
    parametersFormat: "table",
    propertiesFormat: "list",
    skipErrorChecking: true,
    logLevel: "Error",
    githubPages: false,
  });
  const project = await application.convert();
  if (project === undefined) throw new Error("The reference was not generated; its errors are above");
  name(project, entries);
  await application.outputs.writeOutput({ name: "markdown", path: reference }, project);
  await writeFile(join(reference, "index.md"), index(entries));
  return entries.map(({ name: entry }) => entry);
}

function entriesOf(folder) {
  const { name: own, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return Object.entries(exports).flatMap(([path, conditions]) => {
    const source = conditions["@holdfast/source"];
    return source === undefined ? [] : [{ name: `${own}${path.slice(1)}`, source: join(folder, source) }];
  });
}

/** The modules of TypeDoc are named after their files; readers know the entry points. */
function name(project, entries) {
  for (const module of project.children) {
    const [source] = module.sources ?? [];
    const entry = entries.find(({ source: file }) => file === source?.fullFileName);
    module.name = entry?.name ?? module.name;
  }
}

function index(entries) {
  const rows = entries.map(({ name: entry }) => `- [\`${entry}\`](${entry}.md)`);
  return ["# Reference", "", "The public names of each entry point.", "", ...rows, ""].join("\n");
}
