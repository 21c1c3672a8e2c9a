import type { Schedule } from "../sim/plan/schedule.ts";
import type { TraceEvent } from "../sim/run/traced-redis.ts";
import { runSchedule } from "../sim/run/world.ts";
import { FencingTrace } from "./fencing-trace.ts";
import { tooManyAttempts } from "./mentions.ts";
import { QueueTrace } from "./queue-trace.ts";

export interface TraceResult {
  /** Steps of models that were seen. */
  readonly steps: number;
  /** What servers did and callers were told, once for each model. */
  readonly events: number;
  /** Those of them behind more than a model has room for: attempts at a time, numbers of them, states in question. */
  readonly skipped: number;
  /** What a model does not know, by key. */
  readonly mismatches: readonly string[];
}

/** All that servers did, by key, in order. */
export type Traces = ReadonlyMap<string, readonly TraceEvent[]>;

/** Whether the models are about all that happens in a schedule: README.md beside them says why not. */
export function isTraceable({ engine, kind, steps }: Schedule): boolean {
  const isOfMutexes = engine === "quorum" && ["mutex", "all", "reentrant", "election"].includes(kind);
  return isOfMutexes && !steps.some((step) => step.kind === "step node" || step.kind === "restart node");
}

/** Plays a schedule of mutexes on a quorum, and hears what its servers do. */
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

/** Plays what servers did on the models. */
export function checkTraces(traces: Traces, nodes: number): TraceResult {
  let [steps, events, skipped] = [0, 0, 0];
  const mismatches: string[] = [];
  for (const [key, trace] of traces) {
    for (const model of [new QueueTrace(nodes, trace), new FencingTrace(nodes, trace)]) {
      const stop = firstMismatch(model, trace);
      steps += model.steps;
      events += trace.length;
      if (stop?.why === tooManyAttempts) {
        skipped += trace.length - stop.index;
      } else if (stop) {
        mismatches.push(`${key}, event ${stop.index} of ${trace.length}: ${stop.why}`);
      }
    }
  }
  return { steps, events, skipped, mismatches };
}

function firstMismatch(
  model: QueueTrace | FencingTrace,
  trace: readonly TraceEvent[],
): { readonly index: number; readonly why: string } | undefined {
  for (const [index, event] of trace.entries()) {
    const why = mismatchReason(model, event, index);
    if (why !== undefined) {
      return { index, why };
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
      return tooManyAttempts; // also more numbers than a byte of the model has bits
    }
    throw error;
  }
}
