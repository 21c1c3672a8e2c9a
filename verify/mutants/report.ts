import { levels, type Mutant } from "./mutant.ts";
import { killingFinding, type Verdict } from "./trial.ts";

/** One line for each judged mutant. */
export function verdictLine(verdict: Verdict): string {
  const { mutant, problem } = verdict;
  const death = killingFinding(verdict);
  if (problem !== undefined) {
    return `NOT JUDGED ${mutant.name}: ${problem}`;
  }
  return death
    ? `${mutant.name}: killed by ${death.level} in ${death.seconds.toFixed(1)} s: ${death.killedBy}`
    : `SURVIVES ${mutant.name}: ${mutant.breaks}`;
}

export function mutantList(mutants: readonly Mutant[]): string {
  return mutants
    .map(({ name, breaks, killers }) => `${name} (${killers[0].level})\n    ${breaks}`)
    .join("\n");
}

/** The summary in the last line. */
export function summaryOf(verdicts: readonly Verdict[]): string {
  const problems = verdicts.filter(({ problem }) => problem !== undefined).length;
  const killed = verdicts.filter((verdict) => verdict.problem === undefined && killingFinding(verdict));
  const survivors = verdicts.length - killed.length - problems;
  return `${verdicts.length} mutants: ${killed.length} killed (${byLevels(killed)}), ${survivors} survive, ${problems} not judged`;
}

/** How many mutants each level has killed. */
function byLevels(killed: readonly Verdict[]): string {
  const by = killed.map((verdict) => killingFinding(verdict)?.level);
  return levels.map((level) => `${by.filter((one) => one === level).length} by ${level}`).join(", ");
}

/** The survivors, the levels that killed other mutants, and the share of killed mutants among those that compile. */
export function randomReportOf(verdicts: readonly Verdict[], seed: number): string {
  const broken = verdicts.filter(({ cause }) => cause === "compile").length;
  const endless = verdicts.filter(({ cause }) => cause === "endless").length;
  const unclear = verdicts.filter(({ problem, cause }) => problem !== undefined && cause === undefined);
  const judged = verdicts.filter(({ problem }) => problem === undefined);
  const survivors = judged.filter((verdict) => killingFinding(verdict) === undefined);
  const all = judged.length + endless;
  const killed = all - survivors.length;
  return [
    ...[...survivors, ...unclear].map(verdictLine),
    `${verdicts.length} mutants of seed ${seed}: ${broken} do not compile, ${unclear.length} not judged`,
    `${killed} of ${all} killed (${byLevels(judged)}, ${endless} by a timeout): ${((killed / all) * 100).toFixed(1)} %`,
  ].join("\n");
}
