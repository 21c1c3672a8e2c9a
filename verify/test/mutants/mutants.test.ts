import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { mutatedFiles } from "../../mutants/mutant.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { Sources } from "../../mutants/sources.ts";

const root = repositoryRoot();

const pages = { guarantees: "docs/guarantees.md", protocol: "docs/maintainers/protocol.md" };

/** The text of a section up to the next heading, by the page and the name of the section in its address. */
function sectionText(page: string, anchor: string): string {
  const parts = readFileSync(join(root, pages[page as keyof typeof pages]), "utf8").split(/^(?=#+ )/m);
  const found = parts.find((part) => anchorOf(part.split("\n", 1)[0] ?? "") === anchor);
  return (found ?? "").replaceAll(/\s+/g, " ");
}

function anchorOf(heading: string): string {
  return heading
    .replace(/^#+ /, "")
    .toLowerCase()
    .replaceAll(/[^\w -]/g, "")
    .replaceAll(" ", "-");
}

test("each mutant has a name of its own, and its aims find one place each", () => {
  const sources = new Sources(root);
  const outdated = catalogue.flatMap((mutant) => {
    try {
      mutatedFiles(sources, mutant);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(outdated.join("\n")).toBe("");
  expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
});

test("the sentence that a mutant breaks is in its section of the documents", () => {
  const missing = catalogue.filter(({ breaks }) => {
    const [, page = "", anchor = "", sentence = "?"] = /^(\w+)#([\w-]+): (.*)$/.exec(breaks) ?? [];
    return !sectionText(page, anchor).includes(sentence);
  });
  expect(missing.map(({ name, breaks }) => `${name}: not there: ${breaks}`)).toEqual([]);
});

test("each test file of a killer exists", () => {
  const files = catalogue.flatMap(({ killers }) =>
    killers.flatMap((killer) => ("file" in killer ? killer.file : [])),
  );
  expect([...new Set(files)].filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
