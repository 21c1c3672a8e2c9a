import type { Schedule } from "../sim/plan/schedule.ts";
import type { TraceEvent } from "../sim/run/traced-redis.ts";
import { runSchedule } from "../sim/run/world.ts";
import { FencingTrace } from "./fencing-trace.ts";
import { tooManyAttempts } from "./mentions.ts";
import { QueueTrace } from "./queue-trace.ts";

export interface TraceResult {
  /** How many steps of models were observed. */
  readonly steps: number;
  /** How many events of servers and callers were checked, once for each model. */
  readonly events: number;
  /** How many events follow a bound of the model: on attempts at a time, on numbers, or on possible states. */
  readonly skipped: number;
  /** The events that are no steps of a model, by key. */
  readonly mismatches: readonly string[];
}

/** The events of each key, in order. */
export type Traces = ReadonlyMap<string, readonly TraceEvent[]>;

/** Whether the models cover all events of a schedule. The README.md of the models gives the reasons. */
export function isTraceable({ engine, kind, steps }: Schedule): boolean {
  const hasOnlyMutexes = engine === "quorum" && ["mutex", "all", "reentrant", "election"].includes(kind);
  return hasOnlyMutexes && !steps.some((step) => step.kind === "step node" || step.kind === "restart node");
}

/** Runs a schedule of mutexes on a quorum, and records the events of its servers. */
export async function traceOf(schedule: Schedule): Promise<Traces> {
  const traces = new Map<string, TraceEvent[]>();
  await runSchedule(schedule, {
    record: (key, event) => {
      if (key === undefined) {
        traces.forEach((events) => events.push(event));
      } else {
        const events = traces.get(key) ?? [];
        traces.set(key, events);
        events.push(event);
      }
    },
  });
  return traces;
}

/** Checks that the recorded events are steps of the models. */
export function checkTraces(traces: Traces, nodes: number): TraceResult {
  let [steps, events, skipped] = [0, 0, 0];
  const mismatches: string[] = [];
  for (const [key, trace] of traces) {
    for (const model of [new QueueTrace(nodes, trace), new FencingTrace(nodes, trace)]) {
      const stop = firstMismatch(model, trace);
      steps += model.steps;
      events += trace.length;
      if (stop?.reason === tooManyAttempts) {
        skipped += trace.length - stop.index;
      } else if (stop) {
        mismatches.push(`${key}, event ${stop.index} of ${trace.length}: ${stop.reason}`);
      }
    }
  }
  return { steps, events, skipped, mismatches };
}

function firstMismatch(
  model: QueueTrace | FencingTrace,
  trace: readonly TraceEvent[],
): { readonly index: number; readonly reason: string } | undefined {
  for (const [index, event] of trace.entries()) {
    const reason = mismatchReason(model, event, index);
    if (reason !== undefined) {
      return { index, reason };
    }
  }
  return undefined;
}

function mismatchReason(
  model: QueueTrace | FencingTrace,
  event: TraceEvent,
  index: number,
): string | undefined {
  try {
    return model.accept(event, index);
  } catch (error) {
    if (error instanceof RangeError) {
      return tooManyAttempts; // also if the numbers exceed the bits of a byte of the model
    }
    throw error;
  }
}
