import { completionOrder, exclusion, realTimeOrder, uniqueness } from "../properties.ts";
import { phases, type StateLayout } from "./state-layout.ts";
import type { FencingSettings } from "./settings.ts";

/** The agreement rule: the number that a majority reported in one round. 0 if there is none. */
export function agreedFence(
  layout: StateLayout,
  a: number,
  majority: number,
  mutant: FencingSettings["mutant"],
): number {
  let largest = 0;
  for (let n = 0; n < layout.nodes; n += 1) {
    const number = layout.vote(a, n);
    let same = 0;
    for (let other = 0; other < layout.nodes; other += 1) {
      const isSame =
        layout.vote(a, other) === number && layout.voteRound(a, other) === layout.voteRound(a, n);
      same += isSame ? 1 : 0;
    }
    if (number > 0 && same >= majority) {
      return number;
    }
    largest = Math.max(largest, number);
  }
  return mutant === "no-second-round" && layout.votes(a) >= majority ? largest : 0;
}

/** The invariant that is violated if this attempt acquires the lock with this token; 0: none. */
export function violatedInvariant(layout: StateLayout, a: number, token: number, isTimed: boolean): number {
  let broken = token <= layout.floor(a) ? realTimeOrder : 0;
  for (let other = 0; other < layout.attempts; other += 1) {
    if (other !== a && layout.token(other) > 0) {
      broken ||= violatedBetween(layout, other, token, isTimed);
    }
  }
  return broken;
}

function violatedBetween(layout: StateLayout, other: number, token: number, isTimed: boolean): number {
  if (layout.phase(other) === phases.holding) {
    return exclusion;
  }
  if (layout.token(other) === token) {
    return uniqueness;
  }
  return isTimed && layout.token(other) > token ? completionOrder : 0;
}
