import type { Violation } from "../rule.ts";
import type { RunHistory } from "../attempts.ts";

export function checkResidue(run: RunHistory): Violation[] {
  return run.residue.map(({ at, node, round, keys }) => ({
    rule: "residue",
    at,
    key: null,
    text: `residue on server ${node} after round ${round}: ${keys.slice(0, 5).join(", ")}${keys.length > 5 ? " …" : ""}`,
  }));
}

export function checkResources(run: RunHistory): Violation[] {
  return Array.from(run.resources.values()).flatMap(({ key, violations, checked, checkedWrites }) => [
    ...violations.map(({ at, text }): Violation => ({ rule: "resource", at, key, text })),
    ...(checked === checkedWrites
      ? []
      : [
          {
            rule: "resource" as const,
            at: run.endedAt,
            key,
            text: `the counter that checks tokens is ${checked} after ${checkedWrites} accepted writes`,
          },
        ]),
  ]);
}
