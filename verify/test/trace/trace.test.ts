import { expect, test } from "vitest";

import { planSchedule } from "../../sim/plan/planner.ts";
import type { Schedule } from "../../sim/plan/schedule.ts";
import type { NodeState, TraceEvent } from "../../sim/run/traced-redis.ts";
import { checkTraces, isTraceable, traceOf, type Traces } from "../../trace/check.ts";

type Call = Extract<TraceEvent, { kind: "call" }>;

function schedulesFrom(seed: number, count: number): Schedule[] {
  const found: Schedule[] = [];
  for (let next = seed; found.length < count; next += 1) {
    const schedule = planSchedule(next);
    if (isTraceable(schedule)) {
      found.push(schedule);
    }
  }
  return found;
}

test.each([[1], [101], [201], [301], [401]])(
  "all that the nodes of a quorum do is a step of the models: 10 schedules from seed %i on",
  async (seed) => {
    let [steps, events, unjudged] = [0, 0, 0];
    const wrong: string[] = [];
    for (const schedule of schedulesFrom(seed, 10)) {
      const verdict = checkTraces(await traceOf(schedule), schedule.nodes.length);
      steps += verdict.steps;
      events += verdict.events;
      unjudged += verdict.skipped;
      wrong.push(...verdict.mismatches.map((words) => `seed ${schedule.seed}, ${words}`));
    }
    expect(wrong).toEqual([]);
    expect(steps).toBeGreaterThan(1_000);
    expect(unjudged).toBeLessThan(events / 4);
  },
  60_000,
);

/** The schedule of which each test below changes what was seen. */
const [known] = schedulesFrom(1, 1) as [Schedule];

/** The first call of which another is made, and the others as they were. */
function altered(traces: Traces, change: (call: Call) => Partial<Call> | undefined): Traces {
  let isDone = false;
  return new Map(
    Array.from(traces, ([key, events]) => [
      key,
      events.map((event) => {
        const other = isDone || event.kind !== "call" ? undefined : change(event);
        isDone ||= other !== undefined;
        return { ...event, ...other } as TraceEvent;
      }),
    ]),
  );
}

const isGranted = ({ before, after }: Call): boolean =>
  after.holder !== undefined && after.holder !== before.holder;
const isHandedOver = (call: Call): boolean =>
  isGranted(call) && call.before.queue.length > 1 && call.operations.length === 1;

test.each<[string, RegExp, (call: Call) => Partial<NodeState> | undefined]>([
  [
    "a vote goes to another than the first in the queue",
    /executed release of/,
    (call) => (isHandedOver(call) ? { holder: call.before.queue[1] } : undefined),
  ],
  [
    "a number does not rise",
    /cannot give .* the number/,
    (call) =>
      call.before.fencingNumber > 0 && isGranted(call)
        ? { fencingNumber: call.before.fencingNumber }
        : undefined,
  ],
  [
    "a release of another's vote ends it",
    /executed release of .* became free/,
    ({ operations, before, after }) =>
      operations.every(({ name }) => name === "release") && before.holder === after.holder && after.holder
        ? { holder: undefined }
        : undefined,
  ],
  [
    "a place in the queue is lost to one that is given up",
    /executed acquire of/,
    ({ operations, before, after }) =>
      operations.every(({ name }) => name === "acquire") && after.queue.length > before.queue.length
        ? { queue: before.queue }
        : undefined,
  ],
])("a trace in which %s is refused", async (_, words, change) => {
  const traces = altered(await traceOf(known), (call) => {
    const after = change(call);
    return after && { after: { ...call.after, ...after } };
  });
  expect(checkTraces(traces, known.nodes.length).mismatches.join("\n")).toMatch(words);
});
