import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const script = fileURLToPath(new URL("../build-lua.mjs", import.meta.url));

let driver: string;

beforeEach(() => {
  driver = mkdtempSync(join(tmpdir(), "holdfast-build-lua-"));
  mkdirSync(join(driver, "lua", "common"), { recursive: true });
});

afterEach(() => {
  rmSync(driver, { recursive: true });
});

function lua(file: string, ...lines: string[]): void {
  writeFileSync(join(driver, "lua", file), lines.join("\n"));
}

function build(...args: string[]): { status: number | null; errors: string } {
  const { status, stderr } = spawnSync(process.execPath, [script, ...args, driver], { encoding: "utf8" });
  return { status, errors: stderr };
}

function generated(): string {
  return readFileSync(join(driver, "scripts.generated.ts"), "utf8");
}

describe("build-lua", () => {
  test("writes one constant for each script, with its name, SHA-1 and source", () => {
    lua("acquire-mutex.lua", "return 1");
    const source = "return 1\n";
    const sha1 = createHash("sha1").update(source).digest("hex");

    expect(build().status).toBe(0);

    expect(generated()).toContain('import type { Script } from "./script.ts";');
    expect(generated()).toContain(
      `export const acquireMutexScript: Script = { name: "acquire-mutex", sha1: "${sha1}", source: "return 1\\n" };`,
    );
  });

  test("replaces an include by its file, and exports no file of a subfolder", () => {
    lua("common/queue.lua", "local queue = KEYS[2]");
    lua("release.lua", '--- @include "common/queue.lua"', "return queue");

    expect(build().status).toBe(0);

    expect(generated()).toContain(JSON.stringify("local queue = KEYS[2]\nreturn queue\n"));
    expect(generated().match(/export const/g)).toHaveLength(1);
  });

  test("omits comments, indentation and blank lines, and keeps the rest of each line", () => {
    lua("a.lua", "-- Says why.", "if x then", "", "  return '-- kept  ' -- and this", "end", "");

    expect(build().status).toBe(0);

    expect(generated()).toContain(JSON.stringify("if x then\nreturn '-- kept  ' -- and this\nend\n"));
  });

  test.each([
    [
      "a missing include",
      ['--- @include "common/none.lua"'],
      "a.lua: cannot include common/none.lua: no such file",
    ],
    ["a block comment", ["--[[ one", "two ]]"], "a.lua: block comments are not supported"],
    ["a long bracket", ["return [[ one", "two ]]"], "a.lua: strings over several lines are not supported"],
    [
      "a string that continues in the next line",
      ["return 'one\\", "two'"],
      "a.lua: strings over several lines",
    ],
  ])("refuses %s", (_, lines, message) => {
    lua("a.lua", ...lines);

    const { status, errors } = build();

    expect(status).toBe(1);
    expect(errors).toContain(message);
    expect(existsSync(join(driver, "scripts.generated.ts"))).toBe(false);
  });

  test("refuses an include within an include", () => {
    lua("common/inner.lua", "return 1");
    lua("common/outer.lua", '--- @include "common/inner.lua"');
    lua("a.lua", '--- @include "common/outer.lua"');

    expect(build()).toMatchObject({ status: 1, errors: expect.stringContaining("one level deep") });
  });

  test("does not touch a module that is fresh", () => {
    lua("a.lua", "return 1");
    build();
    const before = statSync(join(driver, "scripts.generated.ts")).mtimeMs;

    expect(build().status).toBe(0);

    expect(statSync(join(driver, "scripts.generated.ts")).mtimeMs).toBe(before);
  });
});

describe("build-lua --check", () => {
  test("accepts a fresh module", () => {
    lua("a.lua", "return 1");
    build();

    expect(build("--check")).toEqual({ status: 0, errors: "" });
  });

  test.each([
    ["a script changed", () => lua("a.lua", "return 2")],
    ["a script was added", () => lua("b.lua", "return 2")],
    ["a fragment changed", () => lua("common/part.lua", "local part = 2")],
    ["a script was removed", () => rmSync(join(driver, "lua", "a.lua"))],
    ["the module was edited", () => writeFileSync(join(driver, "scripts.generated.ts"), "")],
    ["the module is missing", () => rmSync(join(driver, "scripts.generated.ts"))],
  ])("finds the module stale when %s, and writes nothing", (_, change) => {
    lua("common/part.lua", "local part = 1");
    lua("a.lua", '--- @include "common/part.lua"', "return part");
    build();
    change();
    const file = join(driver, "scripts.generated.ts");
    const before = existsSync(file) && generated();

    const { status, errors } = build("--check");

    expect(status).toBe(1);
    expect(errors).toMatch(/scripts\.generated\.ts is stale: run `npm run lua`/);
    expect(existsSync(file) && generated()).toBe(before);
  });
});
