import type { Violation } from "../rules.ts";
import { endOf, isHeld, type Held, type RunStory } from "../attempts.ts";
import { hasFailover } from "./failovers.ts";

/**
 * Several keys under one lease. That each is nobody else's as long as the lease says that it is valid is a matter of `exclusion`. Of
 * a key that an operator broke the servers confirm no renewal any more, so the lease can only have what it had.
 */
export function allOrNone(run: RunStory): Violation[] {
  const several = run.stories.filter(isHeld).filter(({ as }) => as === "all");
  return [...several.filter(({ token }) => token === 0n).map(incomplete), ...outlived(run, several)];
}

function incomplete({ process, ask, key, grantedAt }: Held): Violation {
  const text = `${process}#${ask} was granted without a token of this key`;
  return { rule: "whole", at: grantedAt, key, text };
}

function outlived(run: RunStory, several: readonly Held[]): Violation[] {
  const found: Violation[] = [];
  for (const { key, token, doneAt } of run.breaks) {
    for (const lease of several.filter((other) => other.key === key && other.token === token)) {
      const end = endOf(lease);
      const isJudged = doneAt !== undefined && !hasFailover(run, key, doneAt, end); // else the break may be forgotten
      if (isJudged && end > doneAt + run.plan.maxTtlMs) {
        const text = `${lease.process}#${lease.ask} was valid for ${(end - doneAt).toFixed(0)} ms after this key was broken`;
        found.push({ rule: "whole", at: doneAt, key, text });
      }
    }
  }
  return found;
}
