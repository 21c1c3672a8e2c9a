import { describeFinding } from "../judge/findings.ts";
import type { Schedule } from "../plan/schedule.ts";
import type { Shrunk } from "../shrink/shrink.ts";

/** Describes a shrunk schedule, with the JSON with which to run the schedule again. */
export function describeShrunk({ schedule, finding, runs, isDone }: Shrunk): string {
  return [
    `  shrunk in ${runs} runs${isDone ? "" : ", stopped by the time limit"}: ${describeFinding(finding)}`,
    "  to run the schedule again, save this JSON to a file and pass the file to --schedule:",
    formatSchedule(schedule),
  ].join("\n");
}

/** The JSON of a schedule as a table: its settings, and then one line for each node, client and step. */
export function formatSchedule(schedule: Schedule): string {
  const { nodes, clients, steps, ...settings } = schedule;
  const rows = Object.entries({
    nodes,
    clients,
    steps: steps.map(({ at, ...step }) => ({ at, ...step })),
  }).map(
    ([name, items]) =>
      `${JSON.stringify(name)}: [${items.map((item) => `\n  ${onOneLine(item)}`).join(",")}]`,
  );
  return `{\n${[onOneLine(settings).slice(2, -2), ...rows].join(",\n")}\n}\n`;
}

function onOneLine(value: object): string {
  return JSON.stringify(value, null, 1)
    .replace(/\n */g, " ")
    .replace(/\[ | \]/g, (bracket) => bracket.trim());
}
