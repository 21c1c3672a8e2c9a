import { failures, type FailureName } from "./failures.ts";
import type { CellResult } from "./grid.ts";
import type { LibraryName } from "./roster.ts";
import { table } from "./table.ts";

/** The table of verdicts, then how each library failed, then the operations that are not offered. */
export function toText(
  results: readonly CellResult[],
  names: { readonly failures: readonly FailureName[]; readonly libraries: readonly LibraryName[] },
): string {
  const listed = failures.filter(({ name }) => names.failures.includes(name));
  const verdictOf = (failure: FailureName, library: LibraryName): string => {
    const verdict = results.find((result) => result.failure === failure && result.library === library)
      ?.outcome.verdict;
    return verdict === "failed" ? "FAILED" : (verdict ?? "");
  };
  const rows = listed.map(({ name, title }) => [
    title,
    ...names.libraries.map((library) => verdictOf(name, library)),
  ]);
  const sections = listed.flatMap(({ name, title, expectation }) => {
    const lines = names.libraries.flatMap((library) =>
      results.filter((result) => result.failure === name && result.library === library).flatMap(reportLine),
    );
    return lines.length === 0 ? [] : [`${title}: ${expectation}\n${lines.join("\n")}`];
  });
  return `${table(["failure", ...names.libraries], rows)}\n\n${sections.join("\n\n")}\n`;
}

/** The lines for one result. */
function reportLine({ library, outcome: { verdict, how } }: CellResult): string[] {
  return how === "" ? [] : [`  ${library}, ${verdict}: ${how}`];
}

/** Whether Holdfast passed all scenarios that apply to it, and every scenario could be run. */
export function allPassed(results: readonly CellResult[]): boolean {
  const isGood = ({ library, outcome: { verdict } }: CellResult): boolean =>
    verdict !== "not run" && !(library === "holdfast" && verdict === "failed");
  return results.length > 0 && results.every(isGood);
}
