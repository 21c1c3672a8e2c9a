import { phases, type StateLayout } from "./state-layout.ts";

/**
 * Removes from a state what no longer has an effect. An attempt that does not seek receives no replies. Of a holder only the nodes count
 * whose votes it has.
 */
export function canonicalize(layout: StateLayout): void {
  for (let a = 0; a < layout.attempts; a += 1) {
    const phase = layout.phase(a);
    if (phase === phases.holding || phase === phases.past || phase === phases.failed) {
      layout.setRound(a, 0);
      layout.setFloor(a, 0);
      for (let n = 0; n < layout.nodes; n += 1) {
        layout.setReply(a, n, 0);
        layout.setVote(a, n, phase === phases.holding && layout.vote(a, n) > 0 ? 1 : 0, 0);
      }
    }
  }
}
