import { SeededRandom } from "./dice.ts";
import { isUse, type Step, type ScheduleFrame } from "./schedule.ts";

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function sleepRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 3 * 2 ** 28);
}

/** The probability that a machine sleeps in a storm. */
const sleepProbability = 0.2;

/**
 * Plans a sleep that is longer than the waits of the machine's callers. When the machine wakes, its callers send new requests with an
 * estimate of the servers' clocks that is as old as the sleep. Other clients request the same key. A sleep cannot be detected if the
 * clock is set back at the same time, so no machine has both faults.
 */
export function planSleeps(
  steps: readonly Step[],
  { scenario, clients, quietAt }: ScheduleFrame,
  random: SeededRandom,
): Step[] {
  const isSetBack = steps.some((step) => step.kind === "step client" && step.ms < 0);
  const models = steps.filter(
    (step) => isUse(step) && step.attemptId === undefined && step.mode === undefined,
  );
  const [model] = models;
  if (scenario !== "storm" || isSetBack || !model || !isUse(model) || !random.happens(sleepProbability)) {
    return [];
  }
  const { ending: _, abortMs: __, ...plain } = model;
  const client = random.integer(0, clients.length - 1);
  const at = random.between(500, quietAt / 3);
  const forMs = random.pick([random.between(1_000, 3_000), random.between(3_000, quietAt / 2)]);
  const wakesAt = at + forMs;
  return [
    { at, kind: "freeze client", client, forMs, sleeps: true },
    ...Array.from({ length: random.integer(3, 8) }, (): Step => {
      const isSleeper = random.happens(0.5);
      return {
        ...plain,
        at: isSleeper
          ? wakesAt + random.pick([0, random.between(0, 50)])
          : wakesAt + random.between(-300, 300),
        kind: "acquire",
        client: isSleeper ? client : random.integer(0, clients.length - 1),
        waitMs: random.integer(500, 3_000),
        holdMs: random.between(0, 300),
      };
    }),
  ];
}

/** A generator of its own, as for sleeps. */
export function pauseRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 5 * 2 ** 28);
}

/** The probability that processes pause within a turn in a storm. */
const pauseProbability = 0.4;

/**
 * Plans pauses between two readings of a clock in one turn. Without them no turn takes time, so an error that counts one duration from
 * two moments has no effect. Most pauses hit a notification, and are about as long as the claim that it grants.
 */
export function planPauses(
  { scenario, engine, clients, claimMs, quietAt }: ScheduleFrame,
  random: SeededRandom,
): Step[] {
  if (scenario !== "storm" || engine === "memory" || !random.happens(pauseProbability)) {
    return [];
  }
  return Array.from({ length: random.integer(1, 8) }, (): Step => ({
    at: random.between(0, quietAt),
    kind: "pause client",
    client: random.integer(0, clients.length - 1),
    on: random.happens(0.8) ? "message" : "reply",
    readings: random.integer(1, 12),
    forMs: random.pick([
      random.between(1, 60),
      claimMs * random.between(0.5, 1),
      claimMs * random.between(0.9, 1),
    ]),
  }));
}
