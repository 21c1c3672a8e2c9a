import { Dice } from "./dice.ts";
import type { Frame } from "./planner.ts";
import { isUse, type Step, type Use } from "./schedule.ts";

/** What the callers of a schedule do. */
export function workOf(frame: Frame, dice: Dice): Step[] {
  return frame.weather === "duel" ? duelsOf(frame, dice) : burstsOf(frame, dice);
}

function burstsOf(frame: Frame, dice: Dice): Step[] {
  const { weather, peaceAt, clients } = frame;
  const keys = dice.chance(0.2) ? ["a", "b"] : ["a"];
  const isNamed = dice.chance(0.25);
  const bursts = dice.whole(2, weather === "storm" ? 12 : 6);
  const steps: Step[] = [];
  for (let burst = 0; burst < bursts; burst += 1) {
    const begin = dice.between(0, peaceAt * (weather === "unheard" ? 0.4 : 0.9));
    const spreadMs = dice.pick([0, 1, 20, 500]);
    const uses = dice.whole(1, clients.length + 2);
    for (let i = 0; i < uses; i += 1) {
      const names = isNamed ? ["first", "second"] : [];
      steps.push({ at: begin + dice.between(0, spreadMs), ...useOf(frame, keys, names, dice) });
    }
  }
  if (weather === "storm" && dice.chance(0.2)) {
    const client = dice.whole(0, clients.length - 1);
    steps.push({ at: dice.between(0, peaceAt), kind: "break", client, key: dice.pick(keys) });
  }
  return steps;
}

/** Callers who ask again by the name of their attempt, beside the lease that they have by then. */
export function repeatsOf(steps: readonly Step[], dice: Dice): Step[] {
  return steps.flatMap((step) => {
    if (!isUse(step) || step.attemptId === undefined) {
      return [];
    }
    const { extendAtMs: _, abortMs: __, ...rest } = step;
    return Array.from({ length: dice.pick([0, 1, 1, 2]) }, () => ({
      ...rest,
      at: step.at + dice.pick([dice.between(0, 20), dice.between(0, 300)]),
      kind: dice.pick(["try", "acquire"]),
      holdMs: dice.pick([0, dice.between(0, 20), dice.between(0, 300)]),
    }));
  });
}

/** Chance of its own: what else is done is the same whatever is thrown here. */
export function repeatDice(seed: number): Dice {
  return new Dice(seed + 2 ** 28);
}

function useOf(frame: Frame, keys: readonly string[], names: readonly string[], dice: Dice): Use {
  const { weather, maxTtlMs } = frame;
  const isStorm = weather === "storm";
  const isPatient = weather === "deaf" || weather === "unheard";
  const ttlMs = isPatient ? maxTtlMs : dice.whole(isStorm ? 100 : 2_000, maxTtlMs);
  const longMs = isStorm ? ttlMs * dice.between(0.5, 1.6) : 100;
  const holdMs = dice.pick([0, dice.between(0, 20), dice.between(0, 300), longMs]);
  const base = {
    client: dice.whole(0, frame.clients.length - 1),
    key: dice.pick(keys),
    ttlMs,
    renew: dice.chance(0.6),
    holdMs,
    ...(dice.chance(0.3) ? { extendAtMs: holdMs * dice.fraction() } : {}),
  };
  if (isPatient) {
    return { kind: "acquire", ...base, waitMs: null };
  }
  const abortMs = dice.pick([dice.between(0, 10), dice.between(0, 1_500)]);
  const use: Use = {
    kind: dice.pick(["try", "acquire", "acquire", "acquire", "with"]),
    ...base,
    waitMs: dice.pick([dice.whole(1, 50), dice.whole(100, 2_000), 10_000, null]),
    ...(dice.chance(0.15) ? { abortMs } : {}),
    ...(isStorm && dice.chance(0.05) ? { maxHoldMs: dice.whole(50, 1_000) } : {}),
  };
  return endedOf(use, frame, names, dice);
}

/** Some have a name, and some end otherwise than by a release. */
function endedOf(use: Use, frame: Frame, names: readonly string[], dice: Dice): Use {
  const { weather, clients } = frame;
  if (use.kind === "with") {
    const isTry = dice.chance(0.25);
    return {
      ...use,
      ...(isTry ? { waitMs: 0 } : {}),
      ...(dice.chance(0.2) ? { ending: "throw" } : {}),
    };
  } else if (names.length > 0 && dice.chance(0.4)) {
    return { ...use, attemptId: dice.pick(names) };
  } else if (dice.chance(0.08)) {
    return { ...use, ending: { passTo: dice.whole(0, clients.length - 1) } };
  } else if (weather === "storm" && dice.chance(0.04)) {
    return { ...use, ending: "orphan" };
  }
  return use;
}

/** Longer than a lease that a duel gives. */
const duelEveryMs = 500;

/** The first round makes everybody known to the nodes. */
function duelsOf({ clients, peaceAt }: Frame, dice: Dice): Step[] {
  const duellist = { key: "a", ttlMs: 2_000, renew: true } as const;
  const steps = clients.map((_, client): Step => {
    return { at: 0, kind: "acquire", client, ...duellist, waitMs: null, holdMs: 0 };
  });
  for (let at = duelEveryMs; at < peaceAt; at += duelEveryMs) {
    clients.forEach((_, client) => {
      steps.push({
        at: at + dice.between(0, 1),
        kind: "try",
        client,
        ...duellist,
        waitMs: 0,
        holdMs: 200,
      });
    });
  }
  return steps;
}
