import { metrics, trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";

import type { Locks } from "../locks.ts";
import { checkBoolean, checkObject, checkOptionNames, invalidValue } from "../option-checks.ts";
import { ChannelMetrics } from "../telemetry/channel-metrics.ts";
import { instrumentation, sourcesOf, type Instrumentation } from "../telemetry/instrumentation.ts";
import { KeyGroups, type Groups } from "../telemetry/key-groups.ts";
import { NodeReader, observeNodes, observeTimerLag } from "../telemetry/node-metrics.ts";
import { MeterRecorder } from "./meter-recorder.ts";
import { Spans } from "./spans.ts";

/** Options of `instrumentHoldfast` for OpenTelemetry. */
export interface OtelOptions {
  /** False: no metrics. @defaultValue the global meter provider */
  meterProvider?: MeterProvider | false | undefined;
  /** False: no spans. @defaultValue the global tracer provider */
  tracerProvider?: TracerProvider | false | undefined;
  /** The groups of keys. Prefixes start at 0. @defaultValue the part of each key before its first `:` */
  groups?: Groups | undefined;
  /** Whether spans have the key, as `holdfast.key`. Metrics never have it. @defaultValue false */
  keys?: boolean | undefined;
  /** The `Locks` whose servers are observed at each collection, and whose holders `links` looks up. @defaultValue none */
  locks?: Locks | readonly Locks[] | undefined;
  /**
   * Whether the span of a waiter has a link to the span of the holder. Each holder then has the label `traceparent`, and each call that is
   * queued inspects its key once. Only calls of `locks` look the holder up.
   * @defaultValue false
   */
  links?: boolean | undefined;
}

const scope = "holdfast";

/**
 * Creates metrics and spans of all `Locks` in this process, from now on.
 * @returns a function, also a `Disposable`, that ends this
 * @throws {TypeError | RangeError} an invalid option
 */
export function instrumentHoldfast(options: OtelOptions = {}): Instrumentation {
  checkObject("options", options);
  checkOptionNames(options, ["meterProvider", "tracerProvider", "groups", "keys", "locks", "links"]);
  const { meterProvider = metrics, tracerProvider = trace, keys = false, links = false } = options;
  const groups = new KeyGroups(options.groups);
  const locks = sourcesOf(options.locks);
  checkBoolean("keys", keys);
  if (checkBoolean("links", links) && locks.length === 0) {
    throw invalidValue("locks", "the `Locks` whose holders `links` looks up", options.locks);
  }
  const steps: (() => void)[] = [];
  if (meterProvider !== false) {
    const recorder = new MeterRecorder(meterProvider.getMeter(scope));
    const channelMetrics = new ChannelMetrics(recorder, groups);
    observeNodes(recorder, new NodeReader(locks));
    steps.push(
      () => channelMetrics.close(),
      observeTimerLag(recorder),
      () => recorder.close(),
    );
  }
  if (tracerProvider !== false) {
    const spans = new Spans(tracerProvider.getTracer(scope), groups, { keys, linked: links ? locks : [] });
    steps.push(() => spans.close());
  }
  return instrumentation(steps);
}
