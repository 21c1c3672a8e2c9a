import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { bundleCli } from "../../../../scripts/bundle-cli.mjs";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const cache = join(root, "packages", "cli", "node_modules", ".cache");
const bundled = ["packages/cli", "packages/console", "packages/holdfast", "packages/server"].map((path) =>
  join(root, path),
);
const name = "test-bundle-";
const keptForMs = 86_400_000;

/**
 * The folder with the bundled command line. The test files of one run share it. Its name contains the hash of the sources, so that
 * changed sources get another bundle.
 */
export async function testBundle(): Promise<string> {
  const folder = join(cache, `${name}${await hashOfSources()}`);
  if (!existsSync(folder)) {
    await mkdir(cache, { recursive: true });
    await removeOldBundles();
    const own = await mkdtemp(join(cache, name));
    await bundleCli(own);
    await rename(own, folder).catch(async (error: NodeJS.ErrnoException) => {
      await rm(own, { recursive: true });
      if (!existsSync(folder)) throw error; // otherwise another test file was faster
    });
  }
  return folder;
}

async function hashOfSources(): Promise<string> {
  const hash = createHash("sha256");
  const files = [join(root, "package-lock.json"), join(root, "scripts", "bundle-cli.mjs")];
  for (const path of bundled) {
    const sources = await readdir(join(path, "src"), { recursive: true, withFileTypes: true });
    const found = sources
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    files.push(join(path, "package.json"), ...found.sort());
  }
  for (const file of files) {
    hash.update(`${file}\n`).update(await readFile(file));
  }
  return hash.digest("hex").slice(0, 16);
}

async function removeOldBundles(): Promise<void> {
  for (const entry of await readdir(cache)) {
    const path = join(cache, entry);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity })); // another test file has moved it
    if (entry.startsWith(name) && Date.now() - mtimeMs > keptForMs) {
      await rm(path, { recursive: true, force: true });
    }
  }
}
