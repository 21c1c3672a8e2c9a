import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root: string = fileURLToPath(new URL("../../..", import.meta.url));

/** A fenced block of TypeScript or JavaScript of the documentation. */
export interface Sample {
  readonly page: string;
  readonly line: number;
  readonly language: "ts" | "js";
  readonly text: string;
}

/** All blocks of all pages for users, in their order. */
export async function samples(): Promise<Sample[]> {
  const pages = (await readdir(join(root, "docs"), { recursive: true }))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name))
    .sort();
  const readmes = (await readdir(join(root, "packages")))
    .map((name) => join("packages", name, "README.md"))
    .filter((path) => existsSync(join(root, path)));
  const all = ["README.md", ...pages, ...readmes].map(async (page) =>
    blocksOf(page, await readFile(join(root, page), "utf8")),
  );
  return (await Promise.all(all)).flat();
}

/** The blocks in the text of a page. */
function blocksOf(page: string, text: string): Sample[] {
  if (/^ +(```|~~~)[jt]s|^ *(```|~~~)(javascript|typescript|[jt]sx|[cm][jt]s)\b|^~~~/m.test(text)) {
    throw new Error(
      `${page}: begin a block of code by \`\`\`ts or \`\`\`js at the start of a line, so that the tests find it`,
    );
  }
  return [...text.matchAll(/^```(ts|js)\n(.*?)^```$/gms)].map((match) => ({
    page,
    line: text.slice(0, match.index).split("\n").length,
    language: match[1] as "ts" | "js",
    text: match[2] as string,
  }));
}

/**
 * The blocks that are whole programs, by name: the page, and from the second program of a page on its number. A whole program makes its
 * locks itself: it imports `createLocks`, or a package of ours that calls it. Every other block is a fragment, and is only compiled.
 */
export function programsOf(blocks: readonly Sample[]): ReadonlyMap<string, Sample> {
  const programs = new Map<string, Sample>();
  for (const block of blocks.filter(({ text }) => makesLocks.test(text))) {
    const number = [...programs.values()].filter(({ page }) => page === block.page).length + 1;
    programs.set(number === 1 ? block.page : `${block.page}#${number}`, block);
  }
  return programs;
}

const makesLocks = /^import \{[^}]*\bcreateLocks\b[^}]*\} from "holdfast";$|^import .* from "@holdfast\//m;
