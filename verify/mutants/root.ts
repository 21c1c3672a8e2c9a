import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root folder of the repository, found from this file, whether it is a source or built. */
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
