import type { LockMode } from "./lock-mode.ts";
import { SeededRandom } from "./dice.ts";
import {
  isUse,
  type Engine,
  type Kind,
  type Step,
  type Use,
  type FaultScenario,
  type ScheduleFrame,
} from "./schedule.ts";

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function kindRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 2 ** 30);
}

/** Draws the kind of a schedule, after its engine and scenario. */
export function drawKind(
  engine: Engine,
  scenario: FaultScenario,
  random: SeededRandom,
): Pick<ScheduleFrame, "kind" | "limit" | "scenario"> {
  const kind = scenario === "contention" ? "mutex" : random.weighted(kindWeights[engine]);
  const mayDie = scenario === "calm" && engine !== "memory";
  return {
    kind,
    ...(kind === "semaphore" ? { limit: random.integer(1, 5) } : {}),
    scenario: mayDie && random.happens(deathProbabilities[kind]) ? "process-death" : scenario,
  };
}

const kindWeights: Readonly<Record<Engine, readonly (readonly [Kind, number])[]>> = {
  quorum: [
    ["mutex", 55],
    ["read-write", 21],
    ["all", 8],
    ["reentrant", 8],
    ["election", 8],
  ],
  server: [
    ["mutex", 40],
    ["read-write", 20],
    ["semaphore", 22],
    ["all", 6],
    ["reentrant", 6],
    ["election", 6],
  ],
  memory: [
    ["mutex", 40],
    ["read-write", 18],
    ["semaphore", 20],
    ["all", 8],
    ["reentrant", 10],
    ["election", 4],
  ],
};

/** The probability that a process dies in a schedule without other faults. */
const deathProbabilities: Readonly<Record<Kind, number>> = {
  mutex: 0.1,
  "read-write": 0.4,
  semaphore: 0.4,
  all: 0.3,
  reentrant: 0.2,
  election: 0.8,
  latch: 0.3,
};

/** Changes the steps to the kind of the schedule, and adds the steps that only this kind has. */
export function withKind(steps: readonly Step[], frame: ScheduleFrame, random: SeededRandom): Step[] {
  const kindSteps = steps.map((step) =>
    isUse(step) ? { ...withMode(step, frame, random), at: step.at } : step,
  );
  if (frame.kind === "semaphore" && random.happens(0.35)) {
    kindSteps.push(...planLimitChanges(frame, random));
  }
  kindSteps.push(...planDeaths(frame, random));
  return kindSteps;
}

/** Plans the death of a process in a schedule without other faults. */
export function planDeaths(frame: ScheduleFrame, random: SeededRandom): Step[] {
  if (frame.scenario === "process-death") {
    const client = random.integer(0, frame.clients.length - 1);
    const at = random.between(frame.quietAt * 0.1, frame.quietAt);
    return [{ at, kind: "kill client", client, silent: random.happens(0.5) }];
  }
  return [];
}

/** Different clients change the limit at different times, because two changes of one client could arrive in one batch. */
function planLimitChanges({ quietAt, clients }: ScheduleFrame, random: SeededRandom): Step[] {
  const [first, second] = [0, 1].map((client): Step => {
    const at = random.between(0, quietAt);
    return { at, kind: "set limit", client, key: "a", limit: random.integer(1, 5) };
  }) as [Step, Step];
  return clients.length > 1 && random.happens(0.4) ? [first, second] : [first];
}

function withMode(use: Use, frame: ScheduleFrame, random: SeededRandom): Use {
  switch (frame.kind) {
    case "mutex":
    case "latch": // has no uses
      return use;
    case "read-write":
      return readWriteUse(use, frame, random);
    case "semaphore": {
      const permits = random.happens(0.5) ? 1 : random.integer(1, frame.limit as number);
      return withModeInAttempt({ ...use, mode: { kind: "permits", permits } }, String(permits));
    }
    case "all":
      return multiKeyUse(use, random);
    case "reentrant":
      return nestedUse(use, random);
    case "election":
      return candidateUse(use, random);
  }
}

/** Some callers request a mutex of one server. While the key is of the other kind, such a request is refused. */
function readWriteUse(use: Use, { engine }: ScheduleFrame, random: SeededRandom): Use {
  if (engine !== "quorum" && random.happens(0.1)) {
    return use;
  } else if (random.happens(0.6)) {
    return withModeInAttempt({ ...use, mode: { kind: "reader" } }, "reads");
  }
  const writer = withModeInAttempt({ ...use, mode: { kind: "writer" } }, "writes");
  const { attemptId, ending } = writer;
  if (attemptId !== undefined || ending !== undefined || use.kind === "with" || !random.happens(0.35)) {
    return writer;
  }
  const { extendAtMs, ...rest } = writer;
  return { ...rest, mode: { kind: "writer", downgradeAtMs: extendAtMs ?? use.holdMs * random.nextFloat() } };
}

/** Appends the mode to the `attemptId`, because all repeats of an attempt request the same mode. */
function withModeInAttempt(use: Use, mode: string): Use {
  return use.attemptId === undefined ? use : { ...use, attemptId: `${use.attemptId} ${mode}` };
}

const severalKeys = ["a", "b", "c"];

/** Some callers request one of the keys alone. */
function multiKeyUse(use: Use, random: SeededRandom): Use {
  if (random.happens(0.25)) {
    return { ...use, key: random.pick(severalKeys) };
  }
  const shuffled = severalKeys
    .map((key) => [random.nextFloat(), key] as const)
    .sort(([one], [other]) => one - other)
    .map(([, key]) => key);
  const keys = shuffled.slice(0, random.pick([2, 2, 3]));
  return mutexUse({ ...use, key: [...keys].sort()[0] as string, mode: { kind: "several", keys } });
}

function nestedUse(use: Use, random: SeededRandom): Use {
  if (random.happens(0.2)) {
    return use;
  }
  const session = random.happens(0.5) ? { session: random.pick(["first", "second"]) } : {};
  const inner =
    use.kind === "with" ? { depth: random.integer(0, 3), branches: random.integer(1, 3) } : noReentry;
  const { ending, ...rest } = mutexUse({ ...use, mode: { kind: "nested", ...session, ...inner } });
  return ending === "throw" ? { ...rest, ending } : rest;
}

const noReentry = { depth: 0, branches: 1 };

function candidateUse(use: Use, random: SeededRandom): Use {
  if (use.kind !== "acquire" || random.happens(0.1)) {
    return use;
  }
  const { maxHoldMs: _, ...rest } = mutexUse(use);
  return {
    ...rest,
    mode: { kind: "candidate" },
    waitMs: random.happens(0.7) ? null : use.waitMs,
    renew: true,
  };
}

/** The use without an `attemptId` and without a transfer. */
function mutexUse(use: Use & { readonly mode?: LockMode }): Use {
  const { attemptId: _, ending, ...rest } = use;
  return typeof ending === "object" || ending === undefined ? rest : { ...rest, ending };
}
