import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { root, samples, type Sample } from "./support/samples.ts";

// The TypeScript examples of the documentation must compile against the packages. Names that a page leaves to its reader may be
// anything.

/**
 * The compiler settings of the sources, because the blocks import the sources. Settings of a reader's project may be less strict.
 */
const settings = {
  extends: join(root, "tsconfig.base.json"),
  compilerOptions: {
    customConditions: ["@holdfast/source"],
    composite: false,
    isolatedDeclarations: false,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: false,
    experimentalDecorators: true,
    noUncheckedIndexedAccess: false,
    noPropertyAccessFromIndexSignature: false,
    noEmit: true,
    rootDir: "/",
  },
  include: ["blocks"],
};
/** The declarations that a block relies on but does not contain. */
const preamble = {
  createLocks: `import { createLocks } from "holdfast";`,
  isLockError: `import { isLockError } from "holdfast";`,
  redis: `import { redis } from "holdfast/redis";`,
  redlock: `import { redlock } from "holdfast/redis";`,
  Redis: `import { Redis } from "ioredis";`,
  locks: `declare const locks: import("holdfast").Locks;`,
  nodes: `declare const nodes: import("ioredis").Redis[];`,
  client: `declare const client: import("ioredis").Redis;`,
};
const unknownName = /error TS(2304|2552|18004):/;

test("every TypeScript block of the documentation compiles", async () => {
  const blocks = (await samples()).filter(({ language }) => language === "ts");
  expect(blocks.length).toBeGreaterThan(20);
  expect(await errorsIn(blocks)).toEqual([]);
}, 120_000); // one compilation of all blocks, also on a busy machine

test("a block with a type error is found", async () => {
  const wrong: Sample = {
    page: "none.md",
    line: 1,
    language: "ts",
    text: `await locks.acquire("key", { ttl: 1 });`,
  };
  expect(await errorsIn([wrong])).toEqual([expect.stringMatching(/^none\.md:1 .*'ttl' does not exist/)]);
});

async function errorsIn(blocks: readonly Sample[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-snippets-"));
  try {
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), `{ "type": "module" }`);
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings));
    await mkdir(join(folder, "blocks"));
    await Promise.all(
      blocks.map((block, index) => writeFile(join(folder, "blocks", `${index}.ts`), wholeOf(block))),
    );
    const output = await compilerOutput(folder);
    return output.split("\n").flatMap((line) => {
      const [, index] = /^blocks\/(\d+)\.ts\(/.exec(line) ?? [];
      const block = blocks[Number(index)];
      if (line === "" || unknownName.test(line) || /^\s/.test(line)) {
        return [];
      }
      return [block ? `${block.page}:${block.line} ${line}` : line];
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function wholeOf({ text }: Sample): string {
  const missing = Object.entries(preamble).filter(([name]) => !declares(text, name));
  return [...missing.map(([, line]) => line), text, "export {};"].join("\n");
}

function declares(text: string, name: string): boolean {
  return new RegExp(`(const|import) (\\{[^}]*)?\\b${name}\\b`).test(text);
}

function compilerOutput(folder: string): Promise<string> {
  return new Promise((resolve) => {
    const compiler = join(root, "node_modules", ".bin", "tsc");
    execFile(compiler, ["-p", folder, "--pretty", "false"], { cwd: folder }, (_error, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}
