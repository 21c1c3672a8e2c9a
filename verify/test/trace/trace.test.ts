import { isThorough } from "@holdfast/test-kit";
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

test.each(isThorough ? [1, 101, 201, 301, 401] : [1])(
  "every event of a quorum is a step of the models: 10 schedules from seed %i on",
  async (seed) => {
    let [steps, events, skipped] = [0, 0, 0];
    const mismatches: string[] = [];
    for (const schedule of schedulesFrom(seed, 10)) {
      const result = checkTraces(await traceOf(schedule), schedule.nodes.length);
      steps += result.steps;
      events += result.events;
      skipped += result.skipped;
      mismatches.push(...result.mismatches.map((mismatch) => `seed ${schedule.seed}, ${mismatch}`));
    }
    expect(mismatches).toEqual([]);
    expect(steps).toBeGreaterThan(1_000);
    expect(skipped).toBeLessThan(events / 4);
  },
);

/** The schedule whose events each test below changes. */
const [known] = schedulesFrom(1, 1) as [Schedule];

/** The traces with the first call changed for which `change` returns a replacement. */
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
    "a vote goes to a token that is not the first in the queue",
    /executed (release|yield) of/,
    (call) => (isHandedOver(call) ? { holder: call.before.queue[1] } : undefined),
  ],
  [
    "a number does not rise",
    /cannot grant .* with the number/,
    (call) =>
      call.before.fencingNumber > 0 && isGranted(call)
        ? { fencingNumber: call.before.fencingNumber }
        : undefined,
  ],
  [
    "a release ends the vote of another token",
    /executed release of .* became free/,
    ({ operations, before, after }) =>
      operations.every(({ name }) => name === "release") && before.holder === after.holder && after.holder
        ? { holder: undefined }
        : undefined,
  ],
  [
    "an acquire gets no queue entry",
    /executed acquire of/,
    ({ operations, before, after }) =>
      operations.every(({ name }) => name === "acquire") && after.queue.length > before.queue.length
        ? { queue: before.queue }
        : undefined,
  ],
])("the models reject a trace in which %s", async (_, mismatch, change) => {
  const traces = altered(await traceOf(known), (call) => {
    const after = change(call);
    return after && { after: { ...call.after, ...after } };
  });
  expect(checkTraces(traces, known.nodes.length).mismatches.join("\n")).toMatch(mismatch);
});
