import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("../../../examples/nestjs", import.meta.url));
const require = createRequire(join(folder, "package.json"));

test("an application in CommonJS compiles with the lowest TypeScript, and passes its tests in Jest", async () => {
  const { version } = require("typescript/package.json") as { version: string };
  expect(version).toMatch(/^5\.4\./);
  const built = run("typescript", "bin/tsc", ["-p", "."]);
  expect(built.stdout).toBe("");
  const inMemory = run("jest", "bin/jest.js", []);
  expect(inMemory.stderr).toMatch(/Tests: +3 passed, 3 total/);
  const server = await startRedis();
  try {
    const onRedis = run("jest", "bin/jest.js", [], { HOLDFAST_URL: `redis://127.0.0.1:${server.port}` });
    expect(onRedis.stderr).toMatch(/Tests: +3 passed, 3 total/);
  } finally {
    await server.stop();
  }
}, 120_000);

function run(
  name: string,
  program: string,
  args: string[],
  env: Record<string, string> = {},
): { stdout: string; stderr: string } {
  const path = join(dirname(require.resolve(`${name}/package.json`)), program);
  const inherited = { ...process.env };
  delete inherited["NODE_OPTIONS"];
  return spawnSync(process.execPath, [path, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { ...inherited, NO_COLOR: "1", ...env },
  });
}
