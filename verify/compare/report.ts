import { failures, type FailureName } from "./failures.ts";
import type { Result } from "./grid.ts";
import type { LibraryName } from "./roster.ts";
import { table } from "./table.ts";

/** Who passes what, then how it failed, then what was not offered. */
export function toText(
  results: readonly Result[],
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
  const sections = listed.flatMap(({ name, title, mustHold }) => {
    const lines = names.libraries.flatMap((library) =>
      results.filter((result) => result.failure === name && result.library === library).flatMap(line),
    );
    return lines.length === 0 ? [] : [`${title}: ${mustHold}\n${lines.join("\n")}`];
  });
  return `${table(["failure", ...names.libraries], rows)}\n\n${sections.join("\n\n")}\n`;
}

/** What there is to say of it. */
function line({ library, outcome: { verdict, how } }: Result): string[] {
  return how === "" ? [] : [`  ${library}, ${verdict}: ${how}`];
}

/** Whether ours passed all that applies to it, and everything could be run. */
export function isSatisfied(results: readonly Result[]): boolean {
  const isGood = ({ library, outcome: { verdict } }: Result): boolean =>
    verdict !== "not run" && !(library === "holdfast" && verdict === "failed");
  return results.length > 0 && results.every(isGood);
}
