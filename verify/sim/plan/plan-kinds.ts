import type { As } from "./lock-mode.ts";
import { Dice } from "./dice.ts";
import type { Frame } from "./planner.ts";
import { isUse, type Engine, type Kind, type Step, type Use, type Weather } from "./schedule.ts";

/** Chance of its own: a schedule of mutexes is the same whatever is thrown here. */
export function kindDice(seed: number): Dice {
  return new Dice(seed + 2 ** 30);
}

/** What a schedule is about beside what its engine and weather say. */
export function kindOf(
  engine: Engine,
  weather: Weather,
  dice: Dice,
): Pick<Frame, "kind" | "limit" | "weather"> {
  const kind = weather === "duel" ? "mutex" : dice.weigh(shares[engine]);
  const mayDie = weather === "calm" && engine !== "memory";
  return {
    kind,
    ...(kind === "semaphore" ? { limit: dice.whole(1, 5) } : {}),
    weather: mayDie && dice.chance(deaths[kind]) ? "death" : weather,
  };
}

const shares: Readonly<Record<Engine, readonly (readonly [Kind, number])[]>> = {
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

/** How often a process dies where nothing else goes wrong. */
const deaths: Readonly<Record<Kind, number>> = {
  mutex: 0.1,
  "read-write": 0.4,
  semaphore: 0.4,
  all: 0.3,
  reentrant: 0.2,
  election: 0.8,
  latch: 0.3,
};

/** The same steps, as those of the schedule's kind, and what happens to that kind alone. */
export function ofKind(steps: readonly Step[], frame: Frame, dice: Dice): Step[] {
  const kept = steps.map((step) => (isUse(step) ? { ...useOf(step, frame, dice), at: step.at } : step));
  if (frame.kind === "semaphore" && dice.chance(0.35)) {
    kept.push(...newLimits(frame, dice));
  }
  kept.push(...deathsOf(frame, dice));
  return kept;
}

/** Where nothing else goes wrong. */
export function deathsOf(frame: Frame, dice: Dice): Step[] {
  if (frame.weather === "death") {
    const client = dice.whole(0, frame.clients.length - 1);
    const at = dice.between(frame.peaceAt * 0.1, frame.peaceAt);
    return [{ at, kind: "kill client", client, silent: dice.chance(0.5) }];
  }
  return [];
}

/** At different times by different clients: two of one client might travel together, and nobody could tell them apart. */
function newLimits({ peaceAt, clients }: Frame, dice: Dice): Step[] {
  const [first, second] = [0, 1].map((client): Step => {
    const at = dice.between(0, peaceAt);
    return { at, kind: "set limit", client, key: "a", limit: dice.whole(1, 5) };
  }) as [Step, Step];
  return clients.length > 1 && dice.chance(0.4) ? [first, second] : [first];
}

function useOf(use: Use, frame: Frame, dice: Dice): Use {
  switch (frame.kind) {
    case "mutex":
    case "latch": // has no uses
      return use;
    case "read-write":
      return readOrWrite(use, dice);
    case "semaphore": {
      const permits = dice.chance(0.5) ? 1 : dice.whole(1, frame.limit as number);
      return named({ ...use, as: { kind: "permits", permits } }, String(permits));
    }
    case "all":
      return several(use, dice);
    case "reentrant":
      return nested(use, dice);
    case "election":
      return candidate(use, dice);
  }
}

function readOrWrite(use: Use, dice: Dice): Use {
  if (dice.chance(0.6)) {
    return named({ ...use, as: { kind: "reader" } }, "reads");
  }
  const writer = named({ ...use, as: { kind: "writer" } }, "writes");
  const { attemptId, ending } = writer;
  if (attemptId !== undefined || ending !== undefined || use.kind === "with" || !dice.chance(0.35)) {
    return writer;
  }
  const { extendAtMs, ...rest } = writer;
  return { ...rest, as: { kind: "writer", downgradeAtMs: extendAtMs ?? use.holdMs * dice.fraction() } };
}

/** What is asked for is part of an attempt. */
function named(use: Use, what: string): Use {
  return use.attemptId === undefined ? use : { ...use, attemptId: `${use.attemptId} ${what}` };
}

const severalKeys = ["a", "b", "c"];

/** Some ask for one of the keys alone. */
function several(use: Use, dice: Dice): Use {
  if (dice.chance(0.25)) {
    return { ...use, key: dice.pick(severalKeys) };
  }
  const shuffled = severalKeys
    .map((key) => [dice.fraction(), key] as const)
    .sort(([one], [other]) => one - other)
    .map(([, key]) => key);
  const keys = shuffled.slice(0, dice.pick([2, 2, 3]));
  return plain({ ...use, key: [...keys].sort()[0] as string, as: { kind: "several", keys } });
}

function nested(use: Use, dice: Dice): Use {
  if (dice.chance(0.2)) {
    return use;
  }
  const session = dice.chance(0.5) ? { session: dice.pick(["first", "second"]) } : {};
  const inner = use.kind === "with" ? { depth: dice.whole(0, 3), branches: dice.whole(1, 3) } : none;
  const { ending, ...rest } = plain({ ...use, as: { kind: "nested", ...session, ...inner } });
  return ending === "throw" ? { ...rest, ending } : rest;
}

const none = { depth: 0, branches: 1 };

function candidate(use: Use, dice: Dice): Use {
  if (use.kind !== "acquire" || dice.chance(0.1)) {
    return use;
  }
  const { maxHoldMs: _, ...rest } = plain(use);
  return { ...rest, as: { kind: "candidate" }, waitMs: dice.chance(0.7) ? null : use.waitMs, renew: true };
}

/** Without a name, and not given away. */
function plain(use: Use & { readonly as?: As }): Use {
  const { attemptId: _, ending, ...rest } = use;
  return typeof ending === "object" || ending === undefined ? rest : { ...rest, ending };
}
