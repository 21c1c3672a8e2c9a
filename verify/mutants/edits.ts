import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Edit, Mutant } from "./mutant.ts";

/** The folder of all edited files, below the root. */
const sources = "packages/holdfast/src";

/**
 * The edited files of a mutant, by their paths below the root.
 * @throws {Error} if the source has changed, so that an edit does not fit exactly one place
 */
export function mutatedFiles(
  root: string,
  { name, edits }: Pick<Mutant, "name" | "edits">,
): Map<string, string> {
  const files = new Map<string, string>();
  for (const edit of edits) {
    const path = `${sources}/${edit.file}`;
    const text = files.get(path) ?? readFileSync(join(root, path), "utf8");
    files.set(path, applyEdits(name, text, edit));
  }
  return files;
}

function applyEdits(mutant: string, text: string, { file, search, replace }: Edit): string {
  const pieces = text.split(search);
  if (pieces.length !== 2) {
    const found = pieces.length === 1 ? "does not occur" : `occurs ${pieces.length - 1} times`;
    throw new Error(`The mutant ${mutant} is out of date: ${found} in ${file}: ${JSON.stringify(search)}`);
  }
  if (search === replace) {
    throw new Error(`The mutant ${mutant} changes nothing in ${file}: ${JSON.stringify(search)}`);
  }
  return pieces.join(replace);
}
