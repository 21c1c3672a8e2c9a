import { SeededRandom } from "./dice.ts";
import { planDeaths } from "./plan-kinds.ts";
import {
  isFault,
  type Action,
  type Await,
  type CountDown,
  type Step,
  type ScheduleFrame,
} from "./schedule.ts";

/** A generator of its own, so that these draws do not change the rest of the schedule. */
export function latchRandom(seed: number): SeededRandom {
  return new SeededRandom(seed + 2 ** 29);
}

/** Replaces mutexes by latches in some schedules, if the engine has latches. */
export function drawLatch(
  kind: Pick<ScheduleFrame, "kind" | "limit" | "scenario">,
  { engine }: ScheduleFrame,
  random: SeededRandom,
): Pick<ScheduleFrame, "kind" | "limit" | "scenario"> {
  const isOne =
    random.happens(0.2) && kind.kind === "mutex" && engine !== "quorum" && kind.scenario !== "contention";
  if (!isOne) {
    return kind;
  }
  const mayDie = kind.scenario === "calm" && engine === "server" && random.happens(0.3);
  return { kind: "latch", limit: random.integer(1, 8), scenario: mayDie ? "process-death" : kind.scenario };
}

/** Keeps the faults, and plans calls of latches in place of the uses. */
export function latchSteps(steps: readonly Step[], frame: ScheduleFrame, random: SeededRandom): Step[] {
  return [
    ...steps.filter(isFault).map(toLatchStep),
    ...planBursts(frame, random),
    ...planDeaths(frame, random),
  ];
}

/** Latches have no messages of the other kinds, so that the fault drops all messages. */
function toLatchStep(step: Step): Step {
  return step.kind === "lose messages" ? { ...step, event: "" } : step;
}

function planBursts(frame: ScheduleFrame, random: SeededRandom): Step[] {
  const { scenario, quietAt, clients } = frame;
  const limit = frame.limit as number;
  const keys = random.happens(0.2) ? ["a", "b"] : ["a"];
  const ttlsMs = drawTtls(frame, random);
  const bursts = random.integer(2, scenario === "storm" ? 10 : 6);
  const begins = Array.from({ length: bursts }, () =>
    random.between(0, quietAt * (scenario === "lost-notifications" ? 0.5 : 0.9)),
  ).sort((one, other) => one - other);
  return begins.flatMap((begin, burst) => {
    const spreadMs = random.pick([0, 1, 20, 500]);
    const calls = random.integer(1, clients.length + limit);
    const key = random.pick(keys);
    return Array.from({ length: calls }, (): Step => {
      const at = begin + random.between(0, spreadMs);
      const round = random.happens(0.75) ? burst >> 1 : random.integer(0, burst >> 1); // or an earlier round, whose latch may have expired
      const client = random.integer(0, clients.length - 1);
      return { at, ...planCall({ client, key, round, ttlMs: random.pick(ttlsMs) }, frame, random) };
    });
  });
}

/** Some latches expire during the schedule, and others after its end. */
function drawTtls({ scenario }: ScheduleFrame, random: SeededRandom): readonly number[] {
  const long = random.integer(10_000, 20_000);
  return scenario === "lost-notifications" || random.happens(0.3)
    ? [long]
    : [random.integer(100, 600), random.integer(600, 4_000), long];
}

type LatchCallBase = Omit<CountDown, "kind" | "attemptId">;

function planCall(base: LatchCallBase, { scenario, limit }: ScheduleFrame, random: SeededRandom): Action {
  if (random.happens(0.65)) {
    const names = random.integer(0, (limit as number) + 1);
    return {
      kind: "count down",
      ...base,
      ...(random.happens(0.6) ? { attemptId: `round ${base.round}, ${names}` } : {}),
    };
  }
  const waitMs =
    scenario === "lost-notifications"
      ? null
      : random.pick([0, random.integer(1, 50), random.integer(100, 2_000), 10_000, null, null]);
  const wait: Await = { kind: "await", ...base, waitMs };
  const abortMs = random.pick([random.between(0, 10), random.between(0, 1_500)]);
  return random.happens(0.15) ? { ...wait, abortMs } : wait;
}
