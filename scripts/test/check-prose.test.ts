import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("../check-prose.mjs", import.meta.url));
const { check, paragraphsOf } = (await import(program)) as {
  check: (paragraph: string) => [rule: string, text: string][];
  paragraphsOf: (path: string, text: string) => { line: number; text: string }[];
};

const rules = (paragraph: string): string[] => check(paragraph).map(([rule]) => rule);
const words = (count: number): string => `A ${"b ".repeat(count - 2)}c.`;

describe("a sentence", () => {
  test("of plain English has no finding", () => {
    expect(
      rules("If the server restarts, the node does not vote until the longest lease has expired."),
    ).toEqual([]);
  });

  test("of more than 25 words gets an advice", () => {
    expect(rules(words(25))).toEqual([]);
    expect(rules(words(26))).toEqual(["length"]);
    expect(rules(`${words(20)} ${words(20)}`)).toEqual([]);
  });

  test("may be long by code and links only", () => {
    expect(rules(`${words(22).slice(0, -1)} \`a b c d e f g h\` [d](https://example.org/a).`)).toEqual([]);
  });

  test.each([
    "Who waits has a place.",
    "What is lost expires.",
    "Those who wait, wait.",
    "The same holds here.",
  ])("does not begin without its noun: %s", (sentence) => {
    expect(rules(sentence)).toContain("opening");
  });

  test("may be a question", () => {
    expect(rules("Who holds the lock?")).toEqual([]);
  });

  test("is no chain of clauses", () => {
    expect(rules("A holds; B waits; C polls; D has left.")).toEqual(["chain"]);
  });

  test.each([
    ["The holder knows that he has it.", "pronoun"],
    ["The server tells the waiter.", "word"],
    ["The entry stands behind the first.", "word"],
    ["The lease ends by itself.", "word"],
    ["The client gives it back.", "word"],
    ["The lease is gone.", "word"],
  ])("uses the field's words: %s", (sentence, rule) => {
    expect(rules(sentence)).toEqual([rule]);
  });
});

describe("prose is found", () => {
  test("in Markdown, by paragraphs, list items and cells, and not in code", () => {
    const text = [
      "# Title told",
      "",
      "One line",
      "goes on.",
      "",
      "- item",
      "```ts",
      "told();",
      "```",
      "| a | b |",
    ];
    expect(paragraphsOf("a.md", text.join("\n"))).toEqual([
      { line: 3, text: "One line goes on." },
      { line: 6, text: "item" },
      { line: 10, text: "a" },
      { line: 10, text: "b" },
    ]);
  });

  test("in the comments and messages of TypeScript, and not in its names", () => {
    const source = [
      "/**",
      " * A lease.",
      " * @param told the key of the lock",
      " */",
      "function tell(told: string) {",
      "  // One comment",
      "  // of two lines.",
      '  throw new Error("the lock is still held");',
      "}",
    ];
    expect(paragraphsOf("a.ts", source.join("\n")).map(({ line, text }) => [line, text])).toEqual([
      [2, "A lease."],
      [3, "the key of the lock"],
      [6, "One comment of two lines."],
      [8, "the lock is still held"],
    ]);
  });

  test("in the comments of Lua", () => {
    expect(paragraphsOf("a.lua", "-- Grants the lock\n-- to its waiter.\nlocal told = 1")).toEqual([
      { line: 1, text: "Grants the lock to its waiter." },
    ]);
  });
});

test("the program reads the given paths, and exits 0 without a finding", async () => {
  const { code, out } = await run("--count", "LICENSE");
  expect({ code, out }).toEqual({ code: 0, out: "0 findings\n" });
});

function run(...args: string[]): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], (_error, out) => {
      resolve({ code: child.exitCode, out });
    });
  });
}
