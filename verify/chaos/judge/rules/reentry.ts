import type { Violation } from "../rules.ts";
import { endOf, isHeld, type Held, type RunStory, type Story } from "../attempts.ts";

/** Leases of one owner of a reentrant lock: what was asked for while another of them was valid. */
export function holderEntersAgain(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const stories of byNest(run).values()) {
    for (const story of stories.filter(({ kind }) => kind === "nested")) {
      const text = wrong(story, stories);
      if (text !== undefined) {
        const at = story.grantedAt ?? story.refusedAt ?? story.askedAt;
        const { process, ask, key } = story;
        found.push({ rule: "nested", at, key, text: `${process}#${ask} ${text}` });
      }
    }
  }
  return found;
}

/** Of branches of one work only one is inside at a time, so the others may have to wait for that one until they lose patience. */
function wrong(story: Story, stories: readonly Story[]): string | undefined {
  const settledAt = story.grantedAt ?? story.refusedAt;
  const around = stories.find((other) => isAround(other, story, settledAt ?? Infinity));
  if (!around) {
    return undefined;
  }
  const held = `${around.process}#${around.ask} (${around.token})`;
  if (isHeld(story)) {
    return story.token === around.token ? undefined : `has ${story.token} inside ${held}`;
  }
  return story.refusal === undefined || hadToWait(story, stories)
    ? undefined
    : `was refused (${story.refusal}) inside ${held}`;
}

function hadToWait({ ask, refusal, refusedAt = 0 }: Story, stories: readonly Story[]): boolean {
  const branches = stories.filter((other) => other.kind === "nested" && other.ask !== ask).filter(isHeld);
  const isTaken = branches.some((branch) => branch.grantedAt <= refusedAt && endOf(branch) >= refusedAt);
  return refusal === "wait-timeout" && isTaken;
}

function isAround(other: Story, { ask, askedAt }: Story, settledAt: number): other is Held {
  return other.ask !== ask && isHeld(other) && other.grantedAt <= askedAt && endOf(other) > settledAt;
}

function byNest(run: RunStory): Map<string, Story[]> {
  const nests = new Map<string, Story[]>();
  for (const story of run.stories) {
    if (story.nest !== undefined) {
      nests.set(story.nest, [...(nests.get(story.nest) ?? []), story]);
    }
  }
  return nests;
}
