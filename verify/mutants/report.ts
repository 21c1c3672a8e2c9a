import { levels, type Mutant } from "./mutant.ts";
import type { PendingMutant } from "./pending.ts";
import { killingFinding, type Finding, type Verdict } from "./trial.ts";

/** One line for each judged mutant. */
export function verdictLine(verdict: Verdict): string {
  const { mutant, problem } = verdict;
  const death = killingFinding(verdict);
  if (problem !== undefined) {
    return `NOT JUDGED ${mutant.name}: ${problem}`;
  }
  return death
    ? `${mutant.name}: killed by ${describeFinding(death)}`
    : `SURVIVES ${mutant.name}: ${mutant.brokenRule}`;
}

/** The killer of each mutant. */
export function verdictTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => {
    const death = killingFinding(verdict);
    const { mutant, findings } = verdict;
    const seconds = findings.reduce((sum, finding) => sum + finding.seconds, 0);
    const by = verdict.problem === undefined ? (death?.level ?? "SURVIVES") : "NOT JUDGED";
    return [
      mutant.name,
      ruleText(mutant),
      by,
      death ? shorten(death.killedBy ?? "", 100) : "",
      seconds.toFixed(1),
    ];
  });
  return table(["mutant", "broken rule", "killed by", "test or schedule", "s"], rows);
}

/** The levels that kill each mutant. */
export function levelMatrix(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ mutant, findings, problem }) => {
    const cells = levels.map((level) => {
      const found = findings.find((finding) => finding.level === level);
      return found === undefined ? "?" : found.killedBy === undefined ? "-" : shorten(found.killedBy, 60);
    });
    return [mutant.name, ruleText(mutant), ...cells, problem === undefined ? "" : "NOT JUDGED"];
  });
  return table(["mutant", "broken rule", ...levels, ""], rows);
}

export function mutantList(mutants: readonly Mutant[]): string {
  const rows = mutants.map((mutant) => [mutant.name, ruleText(mutant), mutant.killers[0].level]);
  return table(["mutant", "broken rule", "expected killer"], rows);
}

export function pendingList(notYet: readonly PendingMutant[]): string {
  const rows = notYet.map(({ brokenRule, hasCounterexample, waitsFor }) => [
    withMark(brokenRule, hasCounterexample),
    waitsFor,
  ]);
  return table(["not yet possible", "waits for"], rows);
}

/** The summary in the last line. */
export function summaryOf(verdicts: readonly Verdict[]): string {
  const problems = verdicts.filter(({ problem }) => problem !== undefined).length;
  const killed = verdicts.filter((verdict) => verdict.problem === undefined && killingFinding(verdict));
  const unexpected = killed.filter((verdict) => killingFinding(verdict)?.wasExpected === false).length;
  const survivors = verdicts.length - killed.length - problems;
  const byLevel = levels.map(
    (level) => `${killed.filter((verdict) => killingFinding(verdict)?.level === level).length} by ${level}`,
  );
  return `${verdicts.length} mutants: ${killed.length} killed (${byLevel.join(", ")}; ${unexpected} not by the expected killer), ${survivors} survive, ${problems} not judged`;
}

function describeFinding({ level, killedBy, seconds, wasExpected }: Finding): string {
  const note = wasExpected ? "" : " (whole level)";
  return `${level}${note} in ${seconds.toFixed(1)} s: ${killedBy}`;
}

function ruleText({ brokenRule, hasCounterexample }: Mutant): string {
  return withMark(brokenRule, hasCounterexample);
}

function withMark(breaks: string, isMarked: boolean | undefined): string {
  return isMarked === true ? `▲ ${breaks}` : breaks;
}

function shorten(text: string, most: number): string {
  const plain = text.replaceAll(/\s+/g, " ").replaceAll("|", "/");
  return plain.length <= most ? plain : `${plain.slice(0, most - 1)}…`;
}

/** A Markdown table with aligned columns, so that it is readable as plain text too. */
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
