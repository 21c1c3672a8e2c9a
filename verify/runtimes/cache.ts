import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import { cacheFolder } from "@holdfast/test-kit";

/** A folder in the user's cache, which `fill` creates. A failed attempt leaves no folder. */
export async function cached(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(cacheFolder, name);
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
