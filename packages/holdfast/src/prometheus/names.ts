import { instruments, type InstrumentName } from "../telemetry/instruments.ts";

/** The name of an instrument in Prometheus, by the rules of OpenTelemetry: with its unit, and `_total` for a counter. */
export function metricName(name: InstrumentName): string {
  const { kind, unit } = instruments[name];
  return `${name.replaceAll(".", "_")}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}

/** The label of an attribute. */
export function labelName(attribute: string): string {
  return attribute.replaceAll(".", "_");
}
