import { SeededRandom } from "../../sim/plan/dice.ts";
import type { FileChange } from "../aim.ts";
import type { Mutant } from "../mutant.ts";
import { placeInFile, type Program, type Sources } from "../sources.ts";
import type { Change } from "../syntax/node.ts";
import { changesOf, sourceOf } from "../syntax/operators.ts";
import { relatedTo } from "./related.ts";

/**
 * Adapters of clients and topologies, because only their own tests on real servers reach them. Also the texts of errors and diagnostics, and
 * generated files.
 */
const excludedFiles =
  /^(testing|drivers\/(connect|http))[/.]|\/cluster\/|\/lua\/audit\.lua$|\/(ioredis|node-redis|open-redis)|^(errors|diagnostics|index)\.ts$/;

/** The share of mutants in scripts, because most atomic operations are there. */
const luaShare = 1 / 3;

/** Random mutants with one change each, at places that the seed selects. */
export function randomMutants(sources: Sources, count: number, seed: number): Mutant[] {
  const random = new SeededRandom(seed);
  const scripts = places(sources, /\/lua\/[\w-]+\.lua$/); // without the files that scripts include
  const modules = places(sources, /\.ts$/);
  const mutants = new Map<string, Mutant>();
  while (mutants.size < Math.min(count, scripts.length + modules.length)) {
    const mutant = random.pick(random.happens(luaShare) ? scripts : modules)();
    mutants.set(mutant.name, mutant);
  }
  return [...mutants.values()];
}

/** The possible mutants. A change of a file that two scripts include is there once. */
function places(sources: Sources, pattern: RegExp): (() => Mutant)[] {
  const found = new Map<string, () => Mutant>();
  const files = [...sources.files.keys()].filter((file) => pattern.test(file) && !excludedFiles.test(file));
  for (const one of files) {
    const program = sources.program(one);
    for (const change of changesOf(program.tree, program.text, one.endsWith(".ts") ? "!" : "not ")) {
      const { file, offset } = placeInFile(program, change.start);
      found.set(`${file}:${offset}:${change.end - change.start}:${change.replacement}`, () =>
        mutantOf(sources, program, change, { file, offset }),
      );
    }
  }
  return [...found.values()];
}

function mutantOf(
  sources: Sources,
  { text }: Program,
  change: Change,
  { file, offset }: { file: string; offset: number },
): Mutant {
  const { start, end, replacement } = change;
  const line = sources.textOf(file).slice(0, offset).split("\n").length;
  const [before, after] = [sourceOf(change, text), replacement].map((part) =>
    part.replaceAll(/\s+/g, " ").trim(),
  );
  const below = file.replace("packages/holdfast/src/", "");
  const fileChange: FileChange = { file, start: offset, end: offset + end - start, replacement };
  return {
    name: `${below}:${line}:${offset}:${after}`,
    breaks: `${before} → ${after === "" ? "nothing" : after}`,
    changes: [fileChange],
    killers: relatedTo(below),
  };
}
