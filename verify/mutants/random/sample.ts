import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { SeededRandom } from "../../sim/plan/dice.ts";
import { byKept, bySim, edit, type Edit, type Mutant } from "../mutant.ts";
import { sitesOfLua } from "./lua.ts";
import { relatedTo } from "./related.ts";
import type { Site } from "./site.ts";
import { sitesOfTypeScript } from "./typescript.ts";

const sources = "packages/holdfast/src";

/**
 * Adapters of clients and topologies, because only their own tests on real servers reach them. Also the texts of errors and diagnostics, and
 * generated files.
 */
const excludedFiles =
  /^(testing|drivers\/(connect|http))[/.]|\/cluster\/|\/(ioredis|node-redis|open-redis|scripts\.generated)|^(errors|diagnostics|index)\.ts$/;

/** The share of mutants in scripts, because most atomic operations are there. */
const luaShare = 1 / 3;

/** Random mutants with one change each, at places that the seed selects. */
export function randomMutants(root: string, count: number, seed: number): Mutant[] {
  const random = new SeededRandom(seed);
  const texts = new Map(filesIn(root).map((file) => [file, readFileSync(join(root, sources, file), "utf8")]));
  const scripts = sitesIn(texts, (file) => file.endsWith(".lua"));
  const modules = sitesIn(texts, (file) => file.endsWith(".ts"));
  const mutants = new Map<string, Mutant>();
  while (mutants.size < Math.min(count, scripts.length + modules.length)) {
    const [file, site] = random.pick(random.happens(luaShare) ? scripts : modules);
    const mutant = mutantOf(file, texts.get(file) as string, site);
    mutants.set(mutant.name, mutant);
  }
  return [...mutants.values()];
}

function filesIn(root: string): string[] {
  return readdirSync(join(root, sources), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(ts|lua)$/.test(file) && !excludedFiles.test(file))
    .sort();
}

function sitesIn(
  texts: ReadonlyMap<string, string>,
  isChosen: (file: string) => boolean,
): (readonly [file: string, site: Site])[] {
  return [...texts].flatMap(([file, text]) =>
    isChosen(file) ? sitesOf(file, text).map((site) => [file, site] as const) : [],
  );
}

function sitesOf(file: string, text: string): Site[] {
  return file.endsWith(".lua") ? sitesOfLua(text) : sitesOfTypeScript(file, text);
}

function mutantOf(file: string, text: string, { start, end, replacement }: Site): Mutant {
  const line = text.slice(0, start).split("\n").length;
  const before = text.slice(start, end).replaceAll(/\s+/g, " ").trim();
  const change = replacement.replaceAll(/\s+/g, " ").trim();
  return {
    name: `${file}:${line}:${start}:${change}`,
    brokenRule: `${before} → ${change === "" || change === ";" ? "nothing" : change}`,
    edits: [uniqueEdit(file, text, { start, end, replacement })],
    killers: [byKept(), bySim(1, quickRuns), ...relatedTo(file)],
  };
}

const quickRuns = 150;

/** An edit with enough lines around the change to be unique in the file. */
function uniqueEdit(file: string, text: string, { start, end, replacement }: Site): Edit {
  let [from, to] = [start, end];
  do {
    from = from === 0 ? 0 : text.lastIndexOf("\n", from - 2) + 1;
    to = text.indexOf("\n", to + 1);
    to = to < 0 ? text.length : to;
  } while (text.split(text.slice(from, to)).length !== 2);
  return edit(file, text.slice(from, to), text.slice(from, start) + replacement + text.slice(end, to));
}
