/** The levels on which a mutant may be killed, the cheapest first. */
export const levels = ["kept", "sim", "rules", "server"] as const;
export type Level = (typeof levels)[number];

/** The library with one thing wrong on purpose: an assumption that somebody might make, and the design forbids. */
export interface Mutant {
  /** What is wrong with it, in words joined by `-`. */
  readonly name: string;
  /** The sentence of the design that it breaks, shortened, and behind it where it stands. */
  readonly brokenRule: string;
  /** The sentence is one of those that a counterexample stands behind: marked ▲ in the protocol's text. */
  readonly hasCounterexample?: true;
  readonly edits: readonly Edit[];
  /** What is expected to kill it, the first in little time. */
  readonly killers: readonly [Killer, ...Killer[]];
}

/** A change of one file of the library. */
export interface Edit {
  /** Below `packages/holdfast/src`. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replace: string;
}

/** A run that fails on a mutant. */
export type Killer = KeptKiller | SimKiller | TestKiller;

/** The schedules of the simulation that are kept, all of them. */
export interface KeptKiller {
  readonly level: "kept";
}

/** Schedules of the simulation: `runs` of them, from `seed` on. */
export interface SimKiller {
  readonly level: "sim";
  readonly seed: number;
  readonly runs: number;
  /** Only those of this engine, kind or weather; undefined: all. */
  readonly only?: string;
}

/** Tests of one file: on nodes inside the process, or on real servers. */
export interface TestKiller {
  readonly level: "rules" | "server";
  /** Below the root. */
  readonly file: string;
  /** What the names of the tests have in them; undefined: all tests of the file. */
  readonly test?: string;
}

export function edit(file: string, search: string, replace: string): Edit {
  return { file, search, replace };
}

/** A script. */
export function lua(file: string, search: string, replace: string): Edit {
  return edit(`drivers/redis/protocol/lua/${file}.lua`, search, replace);
}

/** One file of the driver for Redis. */
export function redis(file: string, search: string, replace: string): Edit {
  return edit(`drivers/redis/${file}.ts`, search, replace);
}

export function byKept(): KeptKiller {
  return { level: "kept" };
}

export function bySim(seed: number, runs: number, only?: string): SimKiller {
  return only === undefined ? { level: "sim", seed, runs } : { level: "sim", seed, runs, only };
}

/** @param file a test file of the library, on nodes inside the process */
export function byRules(file: string, test?: string): TestKiller {
  return byTest("rules", file, test);
}

/** @param file a test file of the library, on real servers */
export function byServer(file: string, test?: string): TestKiller {
  return byTest("server", file, test);
}

function byTest(level: TestKiller["level"], file: string, test: string | undefined): TestKiller {
  const path = file.startsWith("verify/") ? file : `packages/holdfast/test/${file}.test.ts`;
  return test === undefined ? { level, file: path } : { level, file: path, test };
}
