import { register, type Registry } from "prom-client";

import { checkObject, checkOptionNames } from "../option-checks.ts";
import { ChannelMetrics } from "../telemetry/channel-metrics.ts";
import { instrumentation, sourcesOf, type Instrumentation } from "../telemetry/instrumentation.ts";
import { KeyGroups, type Groups } from "../telemetry/key-groups.ts";
import { NodeReader, observeNodes, observeTimerLag, type NodeSource } from "../telemetry/node-metrics.ts";
import { RegistryRecorder } from "./registry-recorder.ts";

/** Options of `instrumentHoldfast` for prom-client. */
export interface PrometheusOptions {
  /** The registry of the metrics. @defaultValue the default registry of prom-client */
  registry?: Registry | undefined;
  /** The groups of keys. Prefixes start at 0. @defaultValue the part of each key before its first `:` */
  groups?: Groups | undefined;
  /** The `Locks` whose servers are observed at each scrape. @defaultValue none */
  locks?: NodeSource | readonly NodeSource[] | undefined;
}

/**
 * Registers the metrics of all `Locks` in this process, and counts from now on. Call it once for each registry.
 * @returns a function, also a `Disposable`, that removes the metrics
 * @throws {TypeError | RangeError} an invalid option
 * @throws {Error} the registry has a metric of that name
 */
export function instrumentHoldfast(options: PrometheusOptions = {}): Instrumentation {
  checkObject("options", options);
  checkOptionNames(options, ["registry", "groups", "locks"]);
  const { registry = register, groups, locks } = options;
  const keyGroups = new KeyGroups(groups);
  const sources = sourcesOf(locks);
  const recorder = new RegistryRecorder(registry);
  const metrics = new ChannelMetrics(recorder, keyGroups);
  observeNodes(recorder, new NodeReader(sources));
  const stopTimerLag = observeTimerLag(recorder);
  return instrumentation([() => metrics.close(), stopTimerLag, () => recorder.close()]);
}
