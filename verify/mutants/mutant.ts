/** The levels that may kill a mutant, the cheapest first. */
export const levels = ["kept", "sim", "rules", "server"] as const;
export type Level = (typeof levels)[number];

/** The library with one deliberate error: an assumption that a developer might make, but that the design forbids. */
export interface Mutant {
  /** The error, in words joined by `-`. */
  readonly name: string;
  /** The broken rule of the protocol, as a sentence. */
  readonly brokenRule: string;
  /** Whether a counterexample showed that the protocol needs the rule. Reports mark such rules with ▲. */
  readonly hasCounterexample?: true;
  readonly edits: readonly Edit[];
  /** The runs that are expected to kill the mutant, the fastest first. */
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

export function edit(file: string, search: string, replace: string): Edit {
  return { file, search, replace };
}

/** An edit of a script. */
export function lua(file: string, search: string, replace: string): Edit {
  return edit(`drivers/redis/protocol/lua/${file}.lua`, search, replace);
}

/** An edit of a file of the Redis driver. */
export function redis(file: string, search: string, replace: string): Edit {
  return edit(`drivers/redis/${file}.ts`, search, replace);
}

export function byKept(): KeptKiller {
  return { level: "kept" };
}

export function bySim(seed: number, runs: number, only?: string): SimKiller {
  return only === undefined ? { level: "sim", seed, runs } : { level: "sim", seed, runs, only };
}

/** @param file a test file of the library, on nodes in the process */
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
