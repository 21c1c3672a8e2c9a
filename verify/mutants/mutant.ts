import { resolve, type Aim, type FileChange } from "./aim.ts";
import type { Sources } from "./sources.ts";

/** The levels that may kill a mutant, the cheapest first. */
export const levels = ["kept", "sim", "rules", "server"] as const;
export type Level = (typeof levels)[number];

/** The library with one deliberate error. */
export interface Mutant {
  /** The error, in words joined by `-`. */
  readonly name: string;
  /** The section and the sentence that the mutant breaks: `protocol#votes: Release and clean-up go to all nodes.` Or a random change. */
  readonly breaks: string;
  readonly changes: readonly (Aim | FileChange)[];
  /** The runs that kill the mutant, the fastest first. */
  readonly killers: readonly [Killer, ...Killer[]];
}

/** A run that fails on a mutant. */
export type Killer = KeptKiller | SimKiller | TestKiller;

/** All kept schedules of the simulation. */
export interface KeptKiller {
  readonly level: "kept";
}

/** Schedules of the simulation: `runs` of them, from `seed` on. */
export interface SimKiller {
  readonly level: "sim";
  readonly seed: number;
  readonly runs: number;
  /** Restricts the schedules to an engine, kind or profile; undefined: all. */
  readonly only?: string;
}

/** Tests of one file, on nodes in the process or on real servers. */
export interface TestKiller {
  readonly level: "rules" | "server";
  /** Below the root. */
  readonly file: string;
  /** A part of the names of the tests; undefined: all tests of the file. */
  readonly test?: string;
}

export function mutant(
  name: string,
  breaks: string,
  changes: Aim | readonly Aim[],
  ...killers: readonly [Killer, ...Killer[]]
): Mutant {
  return { name, breaks, changes: [changes].flat(), killers };
}

export function byKept(): KeptKiller {
  return { level: "kept" };
}

export function bySim(seed: number, runs: number, only?: string): SimKiller {
  return only === undefined ? { level: "sim", seed, runs } : { level: "sim", seed, runs, only };
}

/** @param file a test file of the library, on nodes in the process */
export function byRules(file: string, test: string): TestKiller {
  return { level: "rules", file: `packages/holdfast/test/${file}.test.ts`, test };
}

/** @param file a test file of the library, on real servers */
export function byServer(file: string, test: string): TestKiller {
  return { level: "server", file: `packages/holdfast/test/${file}.test.ts`, test };
}

/**
 * The changed files of a mutant, by their paths below the root.
 * @throws {Error} if an aim does not find exactly one place
 */
export function mutatedFiles(
  sources: Sources,
  { name, changes }: Pick<Mutant, "name" | "changes">,
): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, start, end, replacement } of resolved(sources, name, changes)) {
    const text = texts.get(file) ?? sources.textOf(file);
    if (text.slice(start, end) === replacement) {
      throw new Error(`The mutant ${name} changes nothing in ${file}: ${replacement}`);
    }
    texts.set(file, text.slice(0, start) + replacement + text.slice(end));
  }
  return texts;
}

/** The changes by their places, the last of a file first. */
function resolved(sources: Sources, name: string, changes: Mutant["changes"]): FileChange[] {
  try {
    const found = changes.map((change) => ("owner" in change ? resolve(sources, change) : change));
    return found.sort((one, other) => other.start - one.start);
  } catch (error) {
    throw new Error(`The mutant ${name} ${(error as Error).message}`, { cause: error });
  }
}
