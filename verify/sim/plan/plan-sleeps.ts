import { Dice } from "./dice.ts";
import type { Frame } from "./planner.ts";
import { isUse, type Step } from "./schedule.ts";

/** Chance of its own: what else is done is the same whatever is thrown here. */
export function sleepDice(seed: number): Dice {
  return new Dice(seed + 2 ** 29);
}

/** How many machines sleep in storms. */
const shareOfSleepers = 0.2;

/**
 * A machine sleeps for longer than its callers wait, and they ask again in the moment in which it wakes, when its estimate of the servers'
 * clocks is as old as its sleep. Others ask for the same key. A clock that stands still while it is set back tells nothing, so machines
 * whose clock is set back do not sleep.
 */
export function sleepsOf(steps: readonly Step[], { weather, clients, peaceAt }: Frame, dice: Dice): Step[] {
  const isSetBack = steps.some((step) => step.kind === "step client" && step.ms < 0);
  const models = steps.filter((step) => isUse(step) && step.attemptId === undefined && step.as === undefined);
  const [model] = models;
  if (weather !== "storm" || isSetBack || !model || !isUse(model) || !dice.chance(shareOfSleepers)) {
    return [];
  }
  const { ending: _, abortMs: __, ...plain } = model;
  const client = dice.whole(0, clients.length - 1);
  const at = dice.between(500, peaceAt / 3);
  const forMs = dice.pick([dice.between(1_000, 3_000), dice.between(3_000, peaceAt / 2)]);
  const wakesAt = at + forMs;
  return [
    { at, kind: "freeze client", client, forMs, sleeps: true },
    ...Array.from({ length: dice.whole(3, 8) }, (): Step => {
      const isSleeper = dice.chance(0.5);
      return {
        ...plain,
        at: isSleeper ? wakesAt + dice.pick([0, dice.between(0, 50)]) : wakesAt + dice.between(-300, 300),
        kind: "acquire",
        client: isSleeper ? client : dice.whole(0, clients.length - 1),
        waitMs: dice.whole(500, 3_000),
        holdMs: dice.between(0, 300),
      };
    }),
  ];
}
