import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "holdfast-runtimes");

/** A folder in the user's cache, which `fill` creates. A failed attempt leaves no folder. */
export async function cached(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(cache, name);
  if (!existsSync(folder)) {
    process.stderr.write(`installing ${name}\n`);
    const incomplete = `${folder}.${process.pid}`;
    try {
      await mkdir(incomplete, { recursive: true });
      await fill(incomplete);
      await rename(incomplete, folder);
    } finally {
      await rm(incomplete, { recursive: true, force: true });
    }
  }
  return folder;
}
