import { runKillers, RunTimedOut } from "./attempt.ts";
import { CompileError, type WorkingCopy } from "./copy.ts";
import { levels, type Killer, type Level, type Mutant } from "./mutant.ts";
import { fullSuites } from "./whole-levels.ts";

/** What a level made of a mutant. */
export interface Finding {
  readonly level: Level;
  /** Undefined: it survived there. */
  readonly killedBy: string | undefined;
  readonly seconds: number;
  /** Whether the catalogue expected it to be killed by this. */
  readonly wasExpected: boolean;
  /** What fails again, of a death by a test that the catalogue does not name. */
  readonly reproduction?: Killer;
}

export interface Verdict {
  readonly mutant: Mutant;
  readonly findings: readonly Finding[];
  /** Why it could not be judged: it does not compile, or what was to kill it does not run. */
  readonly problem?: string;
  /** What kind of problem that is, where chance made the mutant: it is no library, or it goes round in circles. */
  readonly cause?: "compile" | "endless";
}

/** The finding that killed it, if one did. */
export function killingFinding({ findings }: Verdict): Finding | undefined {
  return findings.find(({ killedBy }) => killedBy !== undefined);
}

/** How a mutant is tried. */
export type TrialMode =
  /** By what the catalogue expects, and by nothing else. */
  | "expected"
  /** By what the catalogue expects; where that fails, level by level until one kills it. */
  | "first"
  /** On every level as a whole. */
  | "all";

/** Makes a copy that mutant, and looks who kills it. */
export async function judgeMutant(copy: WorkingCopy, mutant: Mutant, mode: TrialMode): Promise<Verdict> {
  const findings: Finding[] = [];
  try {
    await copy.withMutant(mutant, async () => {
      if (mode !== "all") {
        for (const killers of groupByLevel([mutant])) {
          const finding = await runLevel(copy, killers, true);
          findings.push(finding);
          if (finding.killedBy !== undefined) {
            return;
          }
        }
      }
      for (const level of mode === "expected" ? [] : levels) {
        const finding = await runLevel(copy, fullSuites[level], false);
        findings.push(finding);
        if (mode === "first" && finding.killedBy !== undefined) {
          return;
        }
      }
    });
    await checkUnmutated(
      copy,
      findings.find(({ killedBy }) => killedBy !== undefined),
    );
    return { mutant, findings };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { mutant, findings, problem, ...problemCause(error) };
  }
}

function problemCause(error: unknown): Pick<Verdict, "cause"> {
  if (error instanceof CompileError) {
    return { cause: "compile" };
  }
  return error instanceof RunTimedOut ? { cause: "endless" } : {};
}

async function runLevel(
  copy: WorkingCopy,
  killers: readonly [Killer, ...Killer[]],
  wasExpected: boolean,
): Promise<Finding> {
  const { level } = killers[0];
  const hasFiles = killers.some((killer) => "file" in killer && killer.test === undefined);
  const found = await runKillers(copy, killers, wasExpected ? (hasFiles ? "near" : "some") : "whole");
  if (found.outcome === "passed") {
    return { level, killedBy: undefined, seconds: found.seconds, wasExpected };
  }
  const { killedBy, message, reproduction, seconds } = found;
  const isNamed = wasExpected && !hasFiles;
  if (level === "server" || !isNamed) {
    await reproduces(copy, reproduction, `${killedBy} (${message})`);
  }
  return { level, killedBy, seconds, wasExpected, ...(!isNamed && { reproduction }) };
}

/** Real servers take real time: on a busy machine a test may fail for that. What the mutant has done happens again. */
async function reproduces(copy: WorkingCopy, again: Killer, reproduction: string): Promise<void> {
  const { outcome } = await runKillers(copy, [again], "some");
  if (outcome === "passed") {
    throw new Error(`It failed once and then passed, which kills nobody: ${reproduction}`);
  }
}

/** A test on real servers that nobody chose may fail for another reason, too: the machine is slow. */
async function checkUnmutated(copy: WorkingCopy, death: Finding | undefined): Promise<void> {
  if (death?.level === "server" && death.reproduction) {
    await copy.build("The library");
    const { outcome } = await runKillers(copy, [death.reproduction], "some");
    if (outcome === "failed") {
      throw new Error(`It fails without the mutant, too, which kills nobody: ${death.killedBy}`);
    }
  }
}

/**
 * What must pass on the library as it is: else a mutant could be killed by what has nothing to do with it.
 * @returns what failed
 */
export async function judgeUnmutated(
  copy: WorkingCopy,
  mutants: readonly Mutant[],
  form: TrialMode,
): Promise<string[]> {
  await copy.build("The library");
  const failures: string[] = [];
  for (const killers of form === "all" ? Object.values(fullSuites) : groupByLevel(mutants)) {
    const found = await runKillers(copy, killers, "whole");
    if (found.outcome === "failed") {
      failures.push(`${killers[0].level}: ${found.killedBy}`);
    }
  }
  return failures;
}

/** All killers of some mutants, in as few runs as they take. */
function groupByLevel(mutants: readonly Mutant[]): (readonly [Killer, ...Killer[]])[] {
  const groups = new Map<string, [Killer, ...Killer[]]>();
  for (const killer of mutants.flatMap(({ killers }) => killers)) {
    const group = !("file" in killer)
      ? JSON.stringify(killer)
      : `${killer.level} ${killer.test === undefined ? "files" : "tests"}`;
    const found = groups.get(group);
    if (found) {
      found.push(killer);
    } else {
      groups.set(group, [killer]);
    }
  }
  return [...groups.values()];
}
