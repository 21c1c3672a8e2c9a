// Builds the site into site/dist: docs/, the reference, the search, and the same pages as text. A dead link is an error.

import { rm } from "node:fs/promises";
import { join } from "node:path";

import { build } from "vitepress";

import { deadLinks } from "./check-links.mjs";
import { copyPages } from "./pages.mjs";
import { writeReference } from "./reference.mjs";
import { out, pages, root } from "./settings.mjs";
import { writeTexts } from "./text.mjs";

await rm(pages, { recursive: true, force: true });
await rm(out, { recursive: true, force: true });
await copyPages();
const entries = await writeReference();
process.env["HOLDFAST_SITE_ENTRIES"] = entries.join(" ");
await build(join(root, "site"));
await writeTexts(entries);

const dead = await deadLinks();
for (const link of dead) console.error(`dead link in ${link}`);
process.exitCode = dead.length > 0 ? 1 : 0;
