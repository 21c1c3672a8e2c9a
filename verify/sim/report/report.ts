import { toldOf } from "../judge/findings.ts";
import { isFault, isOfLatch, isUse, type Step } from "../plan/schedule.ts";
import type { Shrunk } from "../shrink/shrink.ts";

/** A failing schedule that was made smaller, to be read, and to be played again. */
export function shrunkReport({ schedule, finding, plays, isDone }: Shrunk): string {
  const { engine, kind, weather, nodes, clients, steps } = schedule;
  return [
    `  shrunk in ${plays} plays${isDone ? "" : ", and not to the end"}: ${toldOf(finding)}`,
    `  ${engine}, ${kind}, ${weather}, ${nodes.length} nodes, ${clients.length} clients, peace at ${schedule.peaceAt} ms`,
    ...steps.map((step) => `    ${stepReport(step)}`),
    "  to be played again by --schedule, from a file with",
    `  ${JSON.stringify(schedule)}`,
  ].join("\n");
}

function stepReport(step: Step): string {
  const { at, kind, ...rest } = step;
  const when = `${at.toFixed(3).padStart(10)} ms`;
  if (isFault(step)) {
    return `${when}  ${kind}: ${detailsOf(rest)}`;
  }
  const { client, key, ...details } = rest as { client: number; key: string };
  const what = isUse(step) || isOfLatch(step) ? detailsOf(details) : "";
  return `${when}  client ${client}: ${kind} ${key} ${what}`.trimEnd();
}

function detailsOf(details: object): string {
  return Object.entries(details)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(", ");
}
