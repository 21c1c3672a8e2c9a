import type { Violation } from "../rules.ts";
import { asksOf, isHeld, type ProcessStory, type RunStory } from "../attempts.ts";

/**
 * A timer of the holder's process, 50 ms after the end of validity, must find that the loss was told. It runs in the process of the
 * holder, so it is late where the process could not run, and needs no bound.
 */
export function lossIsTold(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const story of asksOf(run)) {
    if (!isHeld(story)) {
      continue;
    }
    const { process, ask, key, until } = story;
    if (story.untoldAt !== undefined) {
      const afterMs = (story.untoldAt - until).toFixed(0);
      const text = `${process}#${ask} was not told of the end of its validity, ${afterMs} ms after it`;
      found.push({ rule: "told", at: story.untoldAt, key, text });
      continue;
    }
    const hasEnd = story.lostAt ?? story.releasingAt ?? story.transferredAt ?? story.downgradedAt;
    const { closedAt } = run.processes.get(process) as ProcessStory;
    if (hasEnd === undefined && closedAt !== undefined && until < closedAt) {
      const text = `${process}#${ask} ended without a word of a loss, a release or a transfer`;
      found.push({ rule: "told", at: until, key, text });
    }
  }
  return found;
}
