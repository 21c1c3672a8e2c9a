import { at, literal } from "../../mutants/aim.ts";
import type { Mutant } from "../../mutants/mutant.ts";
import { by } from "../../mutants/syntax/operators.ts";

/** Bounds on sizes and counts with their usual values. */
const constants = {
  maxHandovers: 64,
  mostAtOnce: 256,
  idleQueuesKept: 128,
  maxRecent: 128,
  maxBatch: 128,
  callsInFlight: 2,
  minCallSize: 2,
  maxCalls: 8,
};

/**
 * The library with all bounds on sizes and counts set to `bound`. It is as correct as with the usual bounds, but rare cases happen all the
 * time.
 */
export function withBounds(bound: 1 | 2 | 3): Pick<Mutant, "name" | "changes"> {
  const to = by(String(bound));
  const changed = Object.entries(constants).filter(([, usual]) => usual !== bound);
  return {
    name: `bounds-${bound}`,
    changes: [
      ...changed.map(([name, usual]) => at(name, literal(String(usual)), to)),
      at("minSize", literal("16"), by("2")),
      at("resolveHandover", literal("16"), to),
      at("execute-single: prepare_latch", literal("256"), to),
    ],
  };
}
