import { SeededRandom } from "./dice.ts";
import { isUse, type Step, type Use, type ScheduleFrame } from "./schedule.ts";

/** Plans the uses of all callers. */
export function planWork(frame: ScheduleFrame, random: SeededRandom): Step[] {
  return frame.scenario === "contention" ? planContention(frame, random) : planBursts(frame, random);
}

function planBursts(frame: ScheduleFrame, random: SeededRandom): Step[] {
  const { scenario, quietAt, clients } = frame;
  const keys = random.happens(0.2) ? ["a", "b"] : ["a"];
  const isNamed = random.happens(0.25);
  const bursts = random.integer(2, scenario === "storm" ? 12 : 6);
  const steps: Step[] = [];
  for (let burst = 0; burst < bursts; burst += 1) {
    const begin = random.between(0, quietAt * (scenario === "lost-notifications" ? 0.4 : 0.9));
    const spreadMs = random.pick([0, 1, 20, 500]);
    const uses = random.integer(1, clients.length + 2);
    for (let i = 0; i < uses; i += 1) {
      const names = isNamed ? ["first", "second"] : [];
      steps.push({ at: begin + random.between(0, spreadMs), ...planUse(frame, keys, names, random) });
    }
  }
  if (scenario === "storm" && random.happens(0.2)) {
    const client = random.integer(0, clients.length - 1);
    steps.push({ at: random.between(0, quietAt), kind: "break", client, key: random.pick(keys) });
  }
  return steps;
}

/** Plans repeats of attempts, while their callers may already have the lease. */
export function planRepeats(steps: readonly Step[], random: SeededRandom): Step[] {
  return steps.flatMap((step) => {
    if (!isUse(step) || step.attemptId === undefined) {
      return [];
    }
    const { extendAtMs: _, abortMs: __, ...rest } = step;
    return Array.from({ length: random.pick([0, 1, 1, 2]) }, () => ({
      ...rest,
      at: step.at + random.pick([random.between(0, 20), random.between(0, 300)]),
      kind: random.pick(["try", "acquire"]),
      holdMs: random.pick([0, random.between(0, 20), random.between(0, 300)]),
    }));
  });
}

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function repeatRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 2 ** 28);
}

function planUse(
  frame: ScheduleFrame,
  keys: readonly string[],
  names: readonly string[],
  random: SeededRandom,
): Use {
  const { scenario, maxTtlMs } = frame;
  const isStorm = scenario === "storm";
  const waitsLong = scenario === "lost-inquiries" || scenario === "lost-notifications";
  const ttlMs = waitsLong ? maxTtlMs : random.integer(isStorm ? 100 : 2_000, maxTtlMs);
  const longMs = isStorm ? ttlMs * random.between(0.5, 1.6) : 100;
  const holdMs = random.pick([0, random.between(0, 20), random.between(0, 300), longMs]);
  const base = {
    client: random.integer(0, frame.clients.length - 1),
    key: random.pick(keys),
    ttlMs,
    renew: random.happens(0.6),
    holdMs,
    ...(random.happens(0.3) ? { extendAtMs: holdMs * random.nextFloat() } : {}),
  };
  if (waitsLong) {
    return { kind: "acquire", ...base, waitMs: null };
  }
  const abortMs = random.pick([random.between(0, 10), random.between(0, 1_500)]);
  const use: Use = {
    kind: random.pick(["try", "acquire", "acquire", "acquire", "with"]),
    ...base,
    waitMs: random.pick([random.integer(1, 50), random.integer(100, 2_000), 10_000, null]),
    ...(random.happens(0.15) ? { abortMs } : {}),
    ...(isStorm && random.happens(0.05) ? { maxHoldMs: random.integer(50, 1_000) } : {}),
  };
  return withEnding(use, frame, names, random);
}

/** Gives some uses an `attemptId`, and some another end than a release. */
function withEnding(use: Use, frame: ScheduleFrame, names: readonly string[], random: SeededRandom): Use {
  const { scenario, clients } = frame;
  if (use.kind === "with") {
    const isTry = random.happens(0.25);
    return {
      ...use,
      ...(isTry ? { waitMs: 0 } : {}),
      ...(random.happens(0.2) ? { ending: "throw" } : {}),
    };
  } else if (names.length > 0 && random.happens(0.4)) {
    return { ...use, attemptId: random.pick(names) };
  } else if (random.happens(0.08)) {
    return { ...use, ending: { transferTo: random.integer(0, clients.length - 1) } };
  } else if (scenario === "storm" && random.happens(0.04)) {
    return { ...use, ending: "orphan" };
  }
  return use;
}

/** Longer than a caller of the contention scenario holds a lease, ms. */
const contentionEveryMs = 500;

/** The first round connects every client to the nodes. */
function planContention({ clients, quietAt }: ScheduleFrame, random: SeededRandom): Step[] {
  const contender = { key: "a", ttlMs: 2_000, renew: true } as const;
  const steps = clients.map((_, client): Step => {
    return { at: 0, kind: "acquire", client, ...contender, waitMs: null, holdMs: 0 };
  });
  for (let at = contentionEveryMs; at < quietAt; at += contentionEveryMs) {
    clients.forEach((_, client) => {
      steps.push({
        at: at + random.between(0, 1),
        kind: "try",
        client,
        ...contender,
        waitMs: 0,
        holdMs: 200,
      });
    });
  }
  return steps;
}
