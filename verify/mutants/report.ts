import { levels, type Mutant } from "./mutant.ts";
import type { NotYet } from "./catalogue/delayed-votes.ts";
import { deathOf, type Finding, type Verdict } from "./trial.ts";

/** One line for each mutant as it is judged. */
export function lineOf(verdict: Verdict): string {
  const { mutant, problem } = verdict;
  const death = deathOf(verdict);
  if (problem !== undefined) {
    return `NOT JUDGED ${mutant.name}: ${problem}`;
  }
  return death
    ? `${mutant.name}: killed by ${described(death)}`
    : `SURVIVES ${mutant.name}: ${mutant.breaks}`;
}

/** Who was killed by what. */
export function tableOf(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => {
    const death = deathOf(verdict);
    const { mutant, findings } = verdict;
    const seconds = findings.reduce((sum, finding) => sum + finding.seconds, 0);
    const by = verdict.problem === undefined ? (death?.level ?? "NOBODY: it survives") : "NOT JUDGED";
    return [
      mutant.name,
      sentenceOf(mutant),
      by,
      death ? shortened(death.by ?? "", 100) : "",
      seconds.toFixed(1),
    ];
  });
  return table(["mutant", "sentence", "killed by", "after", "s"], rows);
}

/** Which levels kill which mutant. */
export function matrixOf(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ mutant, findings, problem }) => {
    const cells = levels.map((level) => {
      const found = findings.find((finding) => finding.level === level);
      return found === undefined ? "?" : found.by === undefined ? "-" : shortened(found.by, 60);
    });
    return [mutant.name, sentenceOf(mutant), ...cells, problem === undefined ? "" : "NOT JUDGED"];
  });
  return table(["mutant", "sentence", ...levels, ""], rows);
}

export function listOf(mutants: readonly Mutant[]): string {
  const rows = mutants.map((mutant) => [mutant.name, sentenceOf(mutant), mutant.killers[0].level]);
  return table(["mutant", "sentence", "expected to be killed by"], rows);
}

export function notYetOf(notYet: readonly NotYet[]): string {
  const rows = notYet.map(({ breaks, isMarked, waitsFor }) => [marked(breaks, isMarked), waitsFor]);
  return table(["not yet possible", "waits for"], rows);
}

/** The last line. */
export function summaryOf(verdicts: readonly Verdict[]): string {
  const problems = verdicts.filter(({ problem }) => problem !== undefined).length;
  const killed = verdicts.filter((verdict) => verdict.problem === undefined && deathOf(verdict));
  const unexpected = killed.filter((verdict) => deathOf(verdict)?.wasExpected === false).length;
  const survivors = verdicts.length - killed.length - problems;
  const byLevel = levels.map(
    (level) => `${killed.filter((verdict) => deathOf(verdict)?.level === level).length} by ${level}`,
  );
  return `${verdicts.length} mutants: ${killed.length} killed (${byLevel.join(", ")}; ${unexpected} not by what the catalogue expects), ${survivors} survive, ${problems} not judged`;
}

function described({ level, by, seconds, wasExpected }: Finding): string {
  const note = wasExpected ? "" : " (whole level)";
  return `${level}${note} in ${seconds.toFixed(1)} s: ${by}`;
}

function sentenceOf({ breaks, isMarked }: Mutant): string {
  return marked(breaks, isMarked);
}

function marked(breaks: string, isMarked: boolean | undefined): string {
  return isMarked === true ? `▲ ${breaks}` : breaks;
}

function shortened(text: string, most: number): string {
  const plain = text.replaceAll(/\s+/g, " ").replaceAll("|", "/");
  return plain.length <= most ? plain : `${plain.slice(0, most - 1)}…`;
}

/** A Markdown table whose columns line up, so that it reads as plain text too. */
function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...body].map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${widths.map((width, column) => (row[column] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body.map(line)].join(
    "\n",
  );
}
