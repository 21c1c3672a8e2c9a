import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole repository: this file is below it, as a source or as what is built of it. */
export function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package-lock.json"))) {
    const above = dirname(folder);
    if (above === folder) {
      throw new Error("Expected package-lock.json in a folder above the program");
    }
    folder = above;
  }
  return folder;
}
