import type { Violation } from "../rules.ts";
import type { RunStory } from "../attempts.ts";

export function nothingLeft(run: RunStory): Violation[] {
  return run.left.map(({ at, node, round, keys }) => ({
    rule: "left",
    at,
    key: null,
    text: `left on server ${node} after round ${round}: ${keys.slice(0, 5).join(", ")}${keys.length > 5 ? " …" : ""}`,
  }));
}

export function resourceKeptItsWord(run: RunStory): Violation[] {
  return Array.from(run.resources.values()).flatMap(({ key, faults, checked, checkedWrites }) => [
    ...faults.map(({ at, text }): Violation => ({ rule: "resource", at, key, text })),
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
