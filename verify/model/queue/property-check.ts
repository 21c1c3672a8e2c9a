import { completionOrder, exclusion, realTimeOrder, uniqueness } from "../properties.ts";
import { phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";

/**
 * The invariant that is violated if this attempt acquires the lock with this token; 0: none.
 * @param token 0: the token is not checked
 */
export function violatedInvariant(layout: StateLayout, a: number, token: number): number {
  let broken = token > 0 && token <= layout.floor(a) ? realTimeOrder : 0;
  for (let other = 0; other < layout.attempts; other += 1) {
    if (other !== a) {
      broken ||= violatedBetween(layout, other, token);
    }
  }
  return broken;
}

function violatedBetween(layout: StateLayout, other: number, token: number): number {
  if (layout.phase(other) === phases.holding) {
    return exclusion;
  }
  if (token === 0 || layout.token(other) < token) {
    return 0;
  }
  return layout.token(other) === token ? uniqueness : completionOrder;
}
