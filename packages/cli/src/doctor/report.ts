import { levels, type Diagnosis, type Finding, type Probe } from "@holdfast/server/doctor";

import { sanitizeForTerminal } from "../inspect/table.ts";

const titles = {
  critical: "CRITICAL: a lock can have two holders, or be lost",
  risk: "RISK: the same, after a failure",
  perf: "PERFORMANCE",
  info: "GOOD TO KNOW",
} as const;

/** Formats a diagnosis for people, or only its findings. Empty if there is nothing to print. */
export function report({ topology, nodes, findings, probe }: Diagnosis, onlyFindings: boolean): string {
  const parts = [
    onlyFindings ? "" : `${topology}: ${nodes.join(", ")}`,
    ...levels.map((level) =>
      section(
        titles[level],
        findings.filter((one) => one.level === level),
      ),
    ),
    probe && !onlyFindings ? formatProbe(probe) : "",
    onlyFindings ? "" : formatCounts(findings),
  ];
  return parts
    .filter((part) => part !== "")
    .map((part) => `${part.split("\n").map(sanitizeForTerminal).join("\n")}\n`)
    .join("\n");
}

function section(title: string, findings: readonly Finding[]): string {
  return findings.length === 0 ? "" : [title, ...findings.map(formatFinding)].join("\n");
}

function formatFinding({ id, node, observed, impact, fix, command }: Finding): string {
  return [
    `  ${id} (${node}): ${observed}`,
    `      why: ${impact}`,
    `      do:  ${fix}`,
    ...(command === undefined ? [] : [`           ${command}`]),
  ].join("\n");
}

function formatProbe({ roundTripP50, roundTripP99, acquire, renew, handover, release }: Probe): string {
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  const trip =
    roundTripP50 === null || roundTripP99 === null
      ? ""
      : `round trip ${ms(roundTripP50)} (99 %: ${ms(roundTripP99)}), `;
  return `PROBE: ${trip}acquire ${ms(acquire)}, renew ${ms(renew)}, release ${ms(release)}, release to next grant ${ms(handover)}`;
}

function formatCounts(findings: readonly Finding[]): string {
  const counts = levels.map((level) => `${findings.filter((one) => one.level === level).length} ${level}`);
  return findings.length === 0 ? "no findings" : counts.join(", ");
}
