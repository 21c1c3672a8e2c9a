import { nodeModule } from "./node-modules.ts";

/**
 * A channel of `node:diagnostics_channel`. The package's types import no module of Node here, because a program for browsers has no types
 * of Node.
 */
export interface EventChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** A tracing channel of `node:diagnostics_channel`. */
export interface TraceChannel<Context extends object> {
  readonly start: EventChannel & { runStores<Result>(context: Context, run: () => Result): Result };
  readonly end: EventChannel;
  readonly asyncStart: EventChannel;
  readonly asyncEnd: EventChannel;
  readonly error: EventChannel;
}

const channels = nodeModule("node:diagnostics_channel");

/** A channel without subscribers, for a runtime without `node:diagnostics_channel`. */
const silent = {
  hasSubscribers: false,
  publish: () => undefined,
  runStores: <Result>(_context: object, run: () => Result) => run(),
};

export function channel(name: string): EventChannel {
  return channels?.channel(name) ?? silent;
}

export function tracingChannel<Context extends object>(name: string): TraceChannel<Context> {
  const tracing = channels?.tracingChannel<Context, Context>(name) as TraceChannel<Context> | undefined;
  return (
    tracing ?? {
      start: silent,
      end: silent,
      asyncStart: silent,
      asyncEnd: silent,
      error: silent,
    }
  );
}
