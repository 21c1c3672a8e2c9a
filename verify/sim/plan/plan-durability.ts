import { SeededRandom } from "./dice.ts";
import type { ScheduleFrame, Step } from "./schedule.ts";

/** The probability that the clients of a quorum in a storm trust durable nodes. */
const trustProbability = 0.3;
/** The probability that a node becomes durable by a restart. */
const becomesDurableProbability = 0.4;

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function durabilityRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 9 * 2 ** 28);
}

/** Decides whether the clients trust durable nodes. */
export function drawRestartGuard(
  { engine, scenario }: ScheduleFrame,
  random: SeededRandom,
): Pick<ScheduleFrame, "restartGuard"> {
  return engine === "quorum" && scenario === "storm" && random.happens(trustProbability)
    ? { restartGuard: "trust-durable" }
    : {};
}

/**
 * With clients that trust durable nodes, some nodes become durable by a restart, which may lose their data. As the operator promises,
 * such a node stays durable, and loses nothing in later restarts.
 */
export function withDurability(
  steps: readonly Step[],
  { nodes, restartGuard }: ScheduleFrame,
  random: SeededRandom,
): readonly Step[] {
  if (restartGuard !== "trust-durable") {
    return steps;
  }
  const durable = new Set(nodes.flatMap((node, index) => (node.durable ? [index] : [])));
  return [...steps]
    .sort((one, other) => one.at - other.at)
    .map((step) => {
      if (step.kind !== "restart node") {
        return step;
      } else if (durable.has(step.node)) {
        return { ...step, keepData: true };
      } else if (random.happens(becomesDurableProbability)) {
        durable.add(step.node);
        return { ...step, becomesDurable: true };
      }
      return step;
    });
}
