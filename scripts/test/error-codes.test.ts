import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("docs/troubleshooting.md has a row and a section for every error code, and for no other", async () => {
  const source = await readFile(`${root}packages/holdfast/src/errors.ts`, "utf8");
  const [, union = ""] = /^export type LockErrorCode =([^;]*);/m.exec(source) ?? [];
  const codes = matches(union, /"([a-z-]+)"/g);
  expect(codes).toContain("wait-timeout");

  const page = await readFile(`${root}docs/troubleshooting.md`, "utf8");
  const [, section = ""] = /^## Error codes\n(.*?)^## /ms.exec(page) ?? [];
  expect(matches(section, /^\| \[`([a-z-]+)`\]\(#\1\)/gm)).toEqual(codes);
  expect(matches(section, /^### ([a-z-]+)$/gm)).toEqual(codes);
});

/** The first group of each match, sorted. */
function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group = ""]) => group).sort();
}
