import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

/** The event loop of a test worker is never idle, so the timers run in a process of their own, from the built package. */
const script = `
  import { pbkdf2 } from "node:crypto";
  import { createRequire } from "node:module";
  import { dirname, join } from "node:path";
  import { pathToFileURL } from "node:url";
  const folder = dirname(createRequire(import.meta.url).resolve("holdfast/package.json"));
  const { systemClock } = await import(pathToFileURL(join(folder, "dist/runtime/clock.js")));
  setTimeout(() => {
    systemClock.setTimer(() => console.log("at once"), 0);
    pbkdf2("password", "salt", 200_000, 32, "sha256", () => console.log("later"));
  }, 5);
`;

test("a timer without delay runs in a process that only waits for input, before that input", () => {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  expect(`${stdout}${stderr}`).toBe("at once\nlater\n");
});
