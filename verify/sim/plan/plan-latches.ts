import { Dice } from "./dice.ts";
import { deathsOf } from "./plan-kinds.ts";
import type { Frame } from "./planner.ts";
import { isFault, type Action, type Await, type CountDown, type Step } from "./schedule.ts";

/** Chance of its own: schedules of other kinds are the same whatever is thrown here. */
export function latchDice(seed: number): Dice {
  return new Dice(seed + 2 ** 29);
}

/** Some schedules of mutexes are of latches instead, where the engine has latches. */
export function orLatch(
  kind: Pick<Frame, "kind" | "limit" | "weather">,
  { engine }: Frame,
  dice: Dice,
): Pick<Frame, "kind" | "limit" | "weather"> {
  const isOne = dice.chance(0.2) && kind.kind === "mutex" && engine !== "quorum" && kind.weather !== "duel";
  if (!isOne) {
    return kind;
  }
  const mayDie = kind.weather === "calm" && engine === "server" && dice.chance(0.3);
  return { kind: "latch", limit: dice.whole(1, 8), weather: mayDie ? "death" : kind.weather };
}

/** What goes wrong stays, with the messages of latches; what callers do is about latches. */
export function latchSteps(steps: readonly Step[], frame: Frame, dice: Dice): Step[] {
  return [...steps.filter(isFault).map(aboutLatches), ...burstsOf(frame, dice), ...deathsOf(frame, dice)];
}

/** Messages of another kind would never come. */
function aboutLatches(step: Step): Step {
  return step.kind === "lose messages" ? { ...step, word: "" } : step;
}

function burstsOf(frame: Frame, dice: Dice): Step[] {
  const { weather, peaceAt, clients } = frame;
  const limit = frame.limit as number;
  const keys = dice.chance(0.2) ? ["a", "b"] : ["a"];
  const ttlsMs = ttlsOf(frame, dice);
  const bursts = dice.whole(2, weather === "storm" ? 10 : 6);
  const begins = Array.from({ length: bursts }, () =>
    dice.between(0, peaceAt * (weather === "unheard" ? 0.5 : 0.9)),
  ).sort((one, other) => one - other);
  return begins.flatMap((begin, burst) => {
    const spreadMs = dice.pick([0, 1, 20, 500]);
    const calls = dice.whole(1, clients.length + limit);
    const key = dice.pick(keys);
    return Array.from({ length: calls }, (): Step => {
      const at = begin + dice.between(0, spreadMs);
      const round = dice.chance(0.75) ? burst >> 1 : dice.whole(0, burst >> 1); // or of a latch that may be over
      const client = dice.whole(0, clients.length - 1);
      return { at, ...callOf({ client, key, round, ttlMs: dice.pick(ttlsMs) }, frame, dice) };
    });
  });
}

/** Some end while they are used, and others when all is over. */
function ttlsOf({ weather }: Frame, dice: Dice): readonly number[] {
  const long = dice.whole(10_000, 20_000);
  return weather === "unheard" || dice.chance(0.3)
    ? [long]
    : [dice.whole(100, 600), dice.whole(600, 4_000), long];
}

type About = Omit<CountDown, "kind" | "attemptId">;

function callOf(about: About, { weather, limit }: Frame, dice: Dice): Action {
  if (dice.chance(0.65)) {
    const names = dice.whole(0, (limit as number) + 1);
    return {
      kind: "count down",
      ...about,
      ...(dice.chance(0.6) ? { attemptId: `round ${about.round}, ${names}` } : {}),
    };
  }
  const waitMs =
    weather === "unheard"
      ? null
      : dice.pick([0, dice.whole(1, 50), dice.whole(100, 2_000), 10_000, null, null]);
  const wait: Await = { kind: "await", ...about, waitMs };
  const abortMs = dice.pick([dice.between(0, 10), dice.between(0, 1_500)]);
  return dice.chance(0.15) ? { ...wait, abortMs } : wait;
}
