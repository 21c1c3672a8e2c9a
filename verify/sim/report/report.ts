import { describeFinding } from "../judge/findings.ts";
import { isFault, isLatchAction, isUse, type Step } from "../plan/schedule.ts";
import type { Shrunk } from "../shrink/shrink.ts";

/** A failing schedule that was made smaller, to be read, and to be played again. */
export function describeShrunk({ schedule, finding, runs, isDone }: Shrunk): string {
  const { engine, kind, scenario, nodes, clients, steps } = schedule;
  return [
    `  shrunk in ${runs} plays${isDone ? "" : ", and not to the end"}: ${describeFinding(finding)}`,
    `  ${engine}, ${kind}, ${scenario}, ${nodes.length} nodes, ${clients.length} clients, peace at ${schedule.quietAt} ms`,
    ...steps.map((step) => `    ${describeStep(step)}`),
    "  to be played again by --schedule, from a file with",
    `  ${JSON.stringify(schedule)}`,
  ].join("\n");
}

function describeStep(step: Step): string {
  const { at, kind, ...rest } = step;
  const when = `${at.toFixed(3).padStart(10)} ms`;
  if (isFault(step)) {
    return `${when}  ${kind}: ${formatDetails(rest)}`;
  }
  const { client, key, ...details } = rest as { client: number; key: string };
  const action = isUse(step) || isLatchAction(step) ? formatDetails(details) : "";
  return `${when}  client ${client}: ${kind} ${key} ${action}`.trimEnd();
}

function formatDetails(details: object): string {
  return Object.entries(details)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(", ");
}
