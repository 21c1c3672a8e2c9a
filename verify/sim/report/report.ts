import { describeFinding } from "../judge/findings.ts";
import { isFault, isLatchAction, isUse, type Step } from "../plan/schedule.ts";
import type { Shrunk } from "../shrink/shrink.ts";

/** Describes a shrunk schedule for a reader, with the JSON with which to run the schedule again. */
export function describeShrunk({ schedule, finding, runs, isDone }: Shrunk): string {
  const { engine, kind, scenario, nodes, clients, steps } = schedule;
  return [
    `  shrunk in ${runs} runs${isDone ? "" : ", stopped by the time limit"}: ${describeFinding(finding)}`,
    `  ${engine}, ${kind}, ${scenario}, ${nodes.length} nodes, ${clients.length} clients, quiet period from ${schedule.quietAt} ms`,
    ...steps.map((step) => `    ${describeStep(step)}`),
    "  to run the schedule again, save this JSON to a file and pass the file to --schedule:",
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
