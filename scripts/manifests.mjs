// Writes the version and the repository's address of the root manifest into all files that repeat one of them. These are the other
// manifests, the lock file, the Helm chart, images, links and one example. A maintainer sets `version` and `repository` in
// package.json, and runs the script.
//
// `node scripts/manifests.mjs` writes the files; commit the result. With `--check` the script fails if a file differs. With
// `--release TAG` it also fails if the address is the placeholder, or if TAG is not `v<version>`.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const placeholder = "OWNER/holdfast";
const author = "The Holdfast contributors";

/** @returns `{ version, slug }`; `slug` is `owner/name` of the repository on GitHub */
export function releaseOf({ version, repository }) {
  const [, slug] = /^git\+https:\/\/github\.com\/([\w.-]+\/[\w.-]+)\.git$/.exec(repository?.url) ?? [];
  if (slug === undefined) {
    throw new Error(
      `Expected \`repository.url\` in package.json to be git+https://github.com/<owner>/<name>.git, got ${repository?.url}`,
    );
  }
  return { version, slug };
}

/** @returns the manifest with the fields of the release; of a published package also its addresses */
export function manifestOf(manifest, folder, { version, slug }, names) {
  const fields = Object.fromEntries(
    Object.entries(manifest).map(([field, value]) => [
      field,
      field.endsWith("ependencies") ? ownVersions(value, version, names) : value,
    ]),
  );
  if (manifest.private) return { ...fields, version };
  const { name, description, keywords, license, ...rest } = fields;
  return {
    name,
    version,
    description,
    keywords,
    homepage: `https://github.com/${slug}#readme`,
    bugs: `https://github.com/${slug}/issues`,
    repository: { type: "git", url: `git+https://github.com/${slug}.git`, directory: folder },
    license,
    author,
    ...without(rest, ["version", "homepage", "bugs", "repository", "author", "publishConfig"]),
    publishConfig: { access: "public", provenance: true },
  };
}

/** @returns the text with the version and the address of the release; `formerSlug` is the address that the text may still have */
export function textOf(path, text, { version, slug }, formerSlug) {
  const name = basename(path);
  let next = text
    .replaceAll(`github.com/${formerSlug}`, `github.com/${slug}`)
    .replaceAll(`images.example/${formerSlug.toLowerCase()}`, `images.example/${slug.toLowerCase()}`)
    .replace(new RegExp(`(images\\.example/${slug.toLowerCase()}:)\\d[\\w.-]*`, "g"), `$1${version}`);
  if (name === "Chart.yaml") next = next.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`);
  if (path === "docs/cli.md") next = next.replace(/^(\$ holdfast --version\n).*$/m, `$1${version}`);
  return next;
}

function ownVersions(dependencies, version, names) {
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, range]) => [name, names.has(name) ? version : range]),
  );
}

function without(fields, names) {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

function main(args) {
  const release = releaseOf(readManifest(""));
  const formerSlug = releaseOf({ ...readManifest("packages/holdfast"), version: "" }).slug;
  const files = tracked();
  const folders = files.filter((path) => basename(path) === "package.json").map((path) => dirname(path));
  const names = new Set(folders.map((folder) => readManifest(folder).name));
  const expected = new Map();
  for (const folder of folders.filter((each) => each !== ".")) {
    expected.set(
      join(folder, "package.json"),
      json(manifestOf(readManifest(folder), folder, release, names)),
    );
  }
  expected.set("package-lock.json", json(lockOf(readJson("package-lock.json"), release.version, names)));
  for (const path of files.filter((each) => !expected.has(each) && each !== "package.json")) {
    expected.set(path, textOf(path, read(path), release, formerSlug));
  }
  const stale = [...expected].filter(([path, text]) => read(path) !== text);
  if (args.length === 0) for (const [path, text] of stale) writeFileSync(join(root, path), text);
  else {
    for (const [path] of stale)
      fail(`${path} differs from package.json. Run \`node scripts/manifests.mjs\`, and commit the result.`);
    if (release.slug !== placeholder)
      for (const path of files.filter(hasPlaceholder)) fail(`${path} still has ${placeholder}.`);
    if (args[0] === "--release") checkRelease(release, args[1]);
  }
}

function checkRelease({ version, slug }, tag) {
  if (slug === placeholder) fail(`Set \`repository\` in package.json: it is still ${placeholder}.`);
  if (tag !== `v${version}`) fail(`Expected the tag to be v${version}, got ${tag}.`);
}

function lockOf(lock, version, names) {
  const packages = Object.entries(lock.packages).map(([path, entry]) => {
    if (path.includes("node_modules")) return [path, entry];
    const fields = Object.entries(entry).map(([field, value]) => [
      field,
      field.endsWith("ependencies") ? ownVersions(value, version, names) : value,
    ]);
    return [path, { ...Object.fromEntries(fields), ...(entry.version !== undefined && { version }) }];
  });
  return { ...lock, version, packages: Object.fromEntries(packages) };
}

/** Text files with links or versions. Recorded results stay as they were measured. */
function tracked() {
  return execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  })
    .trim()
    .split("\n")
    .filter(
      (path) =>
        /(\.(json|md|ya?ml|mts|service|env)|Dockerfile)$/.test(path) && !path.startsWith("bench/results/"),
    );
}

function hasPlaceholder(path) {
  return read(path).includes(placeholder);
}

function read(path) {
  return readFileSync(join(root, path), "utf8");
}

function readJson(path) {
  return JSON.parse(read(path));
}

function readManifest(folder) {
  return readJson(join(folder, "package.json"));
}

function json(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function fail(line) {
  console.error(line);
  process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2));
