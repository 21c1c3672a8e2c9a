import type { Channel, TracingChannel } from "node:diagnostics_channel";

import { nodeModule } from "./node-modules.ts";

const channels = nodeModule("node:diagnostics_channel");

/** A channel without subscribers, for a runtime without `node:diagnostics_channel`. */
const silent = { hasSubscribers: false, publish: () => undefined } as unknown as Channel;

export function channel(name: string): Channel {
  return channels?.channel(name) ?? silent;
}

export function tracingChannel<Context extends object>(name: string): TracingChannel<Context, Context> {
  return (channels?.tracingChannel(name) ?? {
    start: silent,
    end: silent,
    asyncStart: silent,
    asyncEnd: silent,
    error: silent,
  }) as TracingChannel<Context, Context>;
}
