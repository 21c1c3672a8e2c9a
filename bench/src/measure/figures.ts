import type { WorkerGroup } from "../run/workers.ts";
import { sum } from "./statistics.ts";
import type { Figures } from "../suites/suite.ts";
import type { Window } from "./window.ts";

/** Combines the values of a case with the failures of its measurement. */
export function figures(
  label: string,
  { settings }: WorkerGroup,
  { measurements }: Window,
  values: Readonly<Record<string, number>>,
): Figures {
  const failures = sum(measurements.map((measurement) => measurement.failures));
  const firstFailure = measurements.find((one) => one.failures > 0)?.firstFailure ?? null;
  return { case: label, settings, values, failures, firstFailure };
}
