import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { bundleCli } from "../bundle-cli.mjs";

test("a bundle leaves other files in its folder", async () => {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-bundle-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "other"), "");
  await bundleCli(folder);
  await bundleCli(folder);
  expect((await readdir(folder)).sort()).toEqual(["LICENSES.txt", "main.cjs", "other", "program.cjs"]);
});
