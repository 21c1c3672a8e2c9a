import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
export const docs = join(root, "docs");
/** The records of the benchmarks, one for each suite. */
export const results = join(root, "bench", "results");
/** The generated sources of the site, in Markdown. */
export const pages = join(root, "site", ".cache", "pages");
export const out = join(root, "site", "dist");
/** The path of the site on its host. */
export const base = process.env["HOLDFAST_SITE_BASE"] ?? "/";

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
export const { version } = manifest;
export const repository = manifest.repository.url.replace(/^git\+|\.git$/g, "");
