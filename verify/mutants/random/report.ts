import { levels } from "../mutant.ts";
import { killingFinding, type Verdict } from "../trial.ts";

/** The survivors, the levels that killed other mutants, and the share of killed mutants among those that compile. */
export function randomReportOf(verdicts: readonly Verdict[], seed: number): string {
  const broken = verdicts.filter(({ cause }) => cause === "compile").length;
  const endless = verdicts.filter(({ cause }) => cause === "endless").length;
  const unclear = verdicts.filter(({ problem, cause }) => problem !== undefined && cause === undefined);
  const judged = verdicts.filter(({ problem }) => problem === undefined);
  const survivors = judged.filter((verdict) => killingFinding(verdict) === undefined);
  const killed = judged.length - survivors.length + endless;
  const byLevel = levels.map(
    (level) => `${judged.filter((verdict) => killingFinding(verdict)?.level === level).length} by ${level}`,
  );
  return [
    ...survivors.map(({ mutant }) => `SURVIVES ${mutant.name}: ${mutant.brokenRule}`),
    ...unclear.map(({ mutant, problem }) => `NOT JUDGED ${mutant.name}: ${problem}`),
    `${verdicts.length} mutants of seed ${seed}: ${broken} do not compile, ${unclear.length} not judged`,
    `${killed} of ${killed + survivors.length} killed (${byLevel.join(", ")}, ${endless} by a timeout): ${percent(killed, killed + survivors.length)}`,
  ].join("\n");
}

function percent(count: number, total: number): string {
  return total === 0 ? "-" : `${((count / total) * 100).toFixed(1)} %`;
}
