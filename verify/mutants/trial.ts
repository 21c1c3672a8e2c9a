import { attempt, NoEnd } from "./attempt.ts";
import { NotCompiled, type Copy } from "./copy.ts";
import { levels, type Killer, type Level, type Mutant } from "./mutant.ts";
import { wholeLevels } from "./whole-levels.ts";

/** What a level made of a mutant. */
export interface Finding {
  readonly level: Level;
  /** Undefined: it survived there. */
  readonly by: string | undefined;
  readonly seconds: number;
  /** Whether the catalogue expected it to be killed by this. */
  readonly wasExpected: boolean;
  /** What fails again, of a death by a test that the catalogue does not name. */
  readonly again?: Killer;
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
export function deathOf({ findings }: Verdict): Finding | undefined {
  return findings.find(({ by }) => by !== undefined);
}

/** How a mutant is tried. */
export type Form =
  /** By what the catalogue expects, and by nothing else. */
  | "expected"
  /** By what the catalogue expects; where that fails, level by level until one kills it. */
  | "first"
  /** On every level as a whole. */
  | "all";

/** Makes a copy that mutant, and looks who kills it. */
export async function judge(copy: Copy, mutant: Mutant, form: Form): Promise<Verdict> {
  const findings: Finding[] = [];
  try {
    await copy.as(mutant, async () => {
      if (form !== "all") {
        for (const killers of together([mutant])) {
          const finding = await find(copy, killers, true);
          findings.push(finding);
          if (finding.by !== undefined) {
            return;
          }
        }
      }
      for (const level of form === "expected" ? [] : levels) {
        const finding = await find(copy, wholeLevels[level], false);
        findings.push(finding);
        if (form === "first" && finding.by !== undefined) {
          return;
        }
      }
    });
    await passUnmutated(
      copy,
      findings.find(({ by }) => by !== undefined),
    );
    return { mutant, findings };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { mutant, findings, problem, ...causeOf(error) };
  }
}

function causeOf(error: unknown): Pick<Verdict, "cause"> {
  if (error instanceof NotCompiled) {
    return { cause: "compile" };
  }
  return error instanceof NoEnd ? { cause: "endless" } : {};
}

async function find(
  copy: Copy,
  killers: readonly [Killer, ...Killer[]],
  wasExpected: boolean,
): Promise<Finding> {
  const { level } = killers[0];
  const hasFiles = killers.some((killer) => "file" in killer && killer.test === undefined);
  const found = await attempt(copy, killers, wasExpected ? (hasFiles ? "near" : "some") : "whole");
  if (found.outcome === "passed") {
    return { level, by: undefined, seconds: found.seconds, wasExpected };
  }
  const { by, seen, again, seconds } = found;
  const isNamed = wasExpected && !hasFiles;
  if (level === "server" || !isNamed) {
    await confirm(copy, again, `${by} (${seen})`);
  }
  return { level, by, seconds, wasExpected, ...(!isNamed && { again }) };
}

/** Real servers take real time: on a busy machine a test may fail for that. What the mutant has done happens again. */
async function confirm(copy: Copy, again: Killer, what: string): Promise<void> {
  const { outcome } = await attempt(copy, [again], "some");
  if (outcome === "passed") {
    throw new Error(`It failed once and then passed, which kills nobody: ${what}`);
  }
}

/** A test on real servers that nobody chose may fail for another reason, too: the machine is slow. */
async function passUnmutated(copy: Copy, death: Finding | undefined): Promise<void> {
  if (death?.level === "server" && death.again) {
    await copy.build("The library");
    const { outcome } = await attempt(copy, [death.again], "some");
    if (outcome === "failed") {
      throw new Error(`It fails without the mutant, too, which kills nobody: ${death.by}`);
    }
  }
}

/**
 * What must pass on the library as it is: else a mutant could be killed by what has nothing to do with it.
 * @returns what failed
 */
export async function judgeUnmutated(copy: Copy, mutants: readonly Mutant[], form: Form): Promise<string[]> {
  await copy.build("The library");
  const failures: string[] = [];
  for (const killers of form === "all" ? Object.values(wholeLevels) : together(mutants)) {
    const found = await attempt(copy, killers, "whole");
    if (found.outcome === "failed") {
      failures.push(`${killers[0].level}: ${found.by}`);
    }
  }
  return failures;
}

/** All killers of some mutants, in as few runs as they take. */
function together(mutants: readonly Mutant[]): (readonly [Killer, ...Killer[]])[] {
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
