import { runKillers, RunTimedOut } from "./attempt.ts";
import { CompileError, type WorkingCopy } from "./copy.ts";
import type { Killer, Level, Mutant } from "./mutant.ts";

/** The result of one level for a mutant. */
export interface Finding {
  readonly level: Level;
  /** Undefined: the mutant survived the level. */
  readonly killedBy: string | undefined;
  readonly seconds: number;
  /** A run that fails again, for a death by a test that the mutant does not name. */
  readonly reproduction?: Killer;
}

export interface Verdict {
  readonly mutant: Mutant;
  readonly findings: readonly Finding[];
  /** The reason why the mutant could not be judged: it does not compile, or a killer does not run. */
  readonly problem?: string;
  /** The kind of problem of a random mutant: it does not compile, or a run does not end. */
  readonly cause?: "compile" | "endless";
}

/** The finding that killed the mutant, if one did. */
export function killingFinding({ findings }: Verdict): Finding | undefined {
  return findings.find(({ killedBy }) => killedBy !== undefined);
}

/** Applies a mutant to a copy, and runs its killers until one kills it. */
export async function judgeMutant(copy: WorkingCopy, mutant: Mutant): Promise<Verdict> {
  const findings: Finding[] = [];
  try {
    await copy.withMutant(mutant, async () => {
      for (const killers of groupByLevel([mutant])) {
        const finding = await runLevel(copy, killers);
        findings.push(finding);
        if (finding.killedBy !== undefined) {
          return;
        }
      }
    });
    await checkUnmutated(copy, findings.at(-1));
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

async function runLevel(copy: WorkingCopy, killers: readonly [Killer, ...Killer[]]): Promise<Finding> {
  const { level } = killers[0];
  const hasFiles = killers.some((killer) => "file" in killer && killer.test === undefined);
  const found = await runKillers(copy, killers, hasFiles ? "near" : "some");
  if (found.outcome === "passed") {
    return { level, killedBy: undefined, seconds: found.seconds };
  }
  const { killedBy, message, reproduction, seconds } = found;
  if (level === "server" || hasFiles) {
    await reproduces(copy, reproduction, `${killedBy} (${message})`);
  }
  return { level, killedBy, seconds, ...(hasFiles && { reproduction }) };
}

/** Requires a second failure, because a test on real servers may fail once on a busy machine. The effect of a mutant recurs. */
async function reproduces(copy: WorkingCopy, again: Killer, reproduction: string): Promise<void> {
  const { outcome } = await runKillers(copy, [again], "some");
  if (outcome === "passed") {
    throw new Error(`A test failed once and then passed, which kills no mutant: ${reproduction}`);
  }
}

/** Requires that a test on real servers passes without the mutant, because an unnamed test may fail for another reason. */
async function checkUnmutated(copy: WorkingCopy, death: Finding | undefined): Promise<void> {
  if (death?.level === "server" && death.reproduction) {
    await copy.build("The library", false);
    const { outcome } = await runKillers(copy, [death.reproduction], "some");
    if (outcome === "failed") {
      throw new Error(`A test also fails without the mutant, so it kills no mutant: ${death.killedBy}`);
    }
  }
}

/**
 * Runs all killers on the unmutated library, where they must pass. Otherwise an unrelated failure could kill a mutant.
 * @returns the failures
 */
export async function judgeUnmutated(copy: WorkingCopy, mutants: readonly Mutant[]): Promise<string[]> {
  await copy.build("The library", false);
  const failures: string[] = [];
  for (const killers of groupByLevel(mutants)) {
    const found = await runKillers(copy, killers, "whole");
    if (found.outcome === "failed") {
      failures.push(`${killers[0].level}: ${found.killedBy}`);
    }
  }
  return failures;
}

/** All killers of some mutants, in as few runs as possible. */
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
