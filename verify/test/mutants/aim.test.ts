import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import {
  at,
  call,
  condition,
  element,
  operand,
  operation,
  phrase,
  returned,
  statement,
  value,
  type Aim,
} from "../../mutants/aim.ts";
import { mutatedFiles } from "../../mutants/mutant.ts";
import { Sources } from "../../mutants/sources.ts";
import {
  by,
  byArgument,
  byCallee,
  byOperator,
  removed,
  withArgument,
  withoutArgument,
} from "../../mutants/syntax/operators.ts";

/** The changed texts by their files, without their white space. */
function changed(files: Readonly<Record<string, string>>, ...changes: Aim[]): string[] {
  const root = mkdtempSync(join(tmpdir(), "holdfast-aims-"));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
  });
  for (const [file, text] of Object.entries(files)) {
    const path = join(root, "packages/holdfast/src", file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const texts = [...mutatedFiles(new Sources(root), { name: "a-mutant", changes })];
  return texts.map(([file, text]) => `${file.split("/").at(-1)}: ${text.replaceAll(/\s+/g, " ").trim()}`);
}

const module = `class Queue {
  get isFull() { return this.size >= this.limit; }
  #take(count) { if (count > 0 && this.isFull) { this.log("full", count); } this.last = Math.max(count, 1); }
}`;

test("an aim in a module is a function and the shape of a node in it", () => {
  const take = (inner: string): string[] => [
    `a.ts: class Queue { get isFull() { return this.size >= this.limit; } #take(count) { ${inner} } }`,
  ];
  const files = { "a.ts": module };
  const last = "this.last = Math.max(count, 1);";
  const log = 'this.log("full", count);';
  expect(changed(files, at("Queue.#take", operand("isFull"), by("!$")))).toEqual(
    take(`if (count > 0 && !this.isFull) { ${log} } ${last}`),
  );
  expect(changed(files, at("Queue.#take", statement("log"), removed))).toEqual(
    take(`if (count > 0 && this.isFull) { } ${last}`),
  );
  expect(changed(files, at("Queue.#take", call("max"), byArgument(1)))).toEqual(
    take(`if (count > 0 && this.isFull) { ${log} } this.last = count;`),
  );
  expect(
    changed(
      files,
      at("Queue.#take", condition(), by("true")),
      at("Queue.#take", [value("last"), element("1")], by("2")),
      at("Queue.#take", call("log"), withoutArgument(2)),
      at("Queue.#take", call("log"), byCallee("warn")),
    ),
  ).toEqual(take('if (true) { this.warn("full"); } this.last = Math.max(count, 2);'));
  expect(changed(files, at("Queue.isFull", [returned(), operation(">=")], byOperator(">")))[0]).toContain(
    "return this.size > this.limit",
  );
});

test("an aim in a script is a function, with all files that the script includes", () => {
  const files = {
    "a/lua/run.lua": `--- @include "parts/lock.lua"\nif now <= 5 then\n  redis.call('DEL', key, info)\nend`,
    "a/lua/parts/lock.lua": `local function raise(ttl)\n  local t = { 1, [2] = 'x' } -- t\n  redis.call('PEXPIRE', key, ttl)\n  return t\nend\n`,
  };
  expect(
    changed(
      files,
      at("run: raise", call("PEXPIRE"), withArgument("'GT'")),
      at("run:", call("DEL"), withoutArgument(3)),
      at("run:", operation("<="), by("true")),
    ),
  ).toEqual([
    "lock.lua: local function raise(ttl) local t = { 1, [2] = 'x' } -- t redis.call('PEXPIRE', key, ttl, 'GT') return t end",
    `run.lua: --- @include "parts/lock.lua" if true then redis.call('DEL', key) end`,
  ]);
});

test("an aim in a text is a phrase, with any white space", () => {
  const files = { "sql.ts": "export const grant = `IF ahead = 0\n  AND free THEN`;" };
  expect(changed(files, at("grant", phrase("ahead = 0 AND"), by("")))).toEqual([
    "sql.ts: export const grant = `IF free THEN`;",
  ]);
});

test("an aim survives another file, another form and other names of variables", () => {
  const moved = {
    "other/b.ts":
      "export class Queue { #take(n) { if (\n n > 0 && // so\n this.isFull) return; this.last = n; } }",
  };
  expect(changed(moved, at("Queue.#take", operand("isFull"), by("false")))[0]).toContain(
    "// so false) return",
  );
});

test("an aim without exactly one place names the function, and what is there", () => {
  expect(() => changed({ "a.ts": module }, at("Queue.put", condition(), removed))).toThrow(
    "The mutant a-mutant aims at Queue.put, but no function has this name",
  );
  expect(() => changed({ "a.ts": module }, at("Queue.#take", condition("isEmpty"), removed))).toThrow(
    'aims at Queue.#take, condition  with "isEmpty": found 0 places instead of 1. There is:\n    count > 0 && this.isFull',
  );
  // A local variable says nothing about the place.
  expect(() => changed({ "a.ts": module }, at("Queue.#take", operand("count"), removed))).toThrow("found 0");
  expect(() => changed({ "a.ts": module }, at("Queue.#take", operand(), removed))).toThrow(
    /found 2 places instead of 1\. There is:\n {4}packages\/holdfast\/src\/a\.ts:\d+/,
  );
  expect(() => changed({ "a.ts": module }, at("Queue.#take", condition(), by("$")))).toThrow(
    "changes nothing",
  );
});
