import type { Configuration } from "./configurations.ts";
import type { Exploration, Progress, Violation } from "./explorer/explore.ts";
import type { Mutant } from "./mutants.ts";

/** One exploration in two lines: its bounds and its result. */
export function describeExploration(configuration: Configuration, exploration: Exploration): string {
  const { name, nodes, attempts, covers } = configuration;
  const { violation, isExhaustive } = exploration;
  const verdict = violation
    ? `BROKEN: ${violation.invariant}`
    : isExhaustive
      ? "holds, exhaustive"
      : "holds, bounded";
  return [
    `${name}: ${nodes} nodes, ${attempts} clients; ${covers}`,
    `  ${verdict}: ${figures(exploration)}`,
    ...(violation ? [describeSchedule(violation)] : []),
  ].join("\n");
}

export function describeMutant(
  { name, breaks }: Mutant,
  exploration: Exploration,
  isCaught: boolean,
): string {
  const { violation, states, seconds } = exploration;
  const { steps = [], continuation = [] } = violation?.schedule ?? {};
  const length = `${steps.length} steps${continuation.length > 0 ? ` and ${continuation.length} for ever` : ""}`;
  const finding = violation ? `${violation.invariant} (${length})` : "nothing falls";
  const found = `${thousands(states)} states, ${seconds.toFixed(1)} s`;
  return `${isCaught ? "caught  " : "SURVIVED"} ${name}: ${breaks}\n           ${finding}; ${found}`;
}

/** A shortest schedule to the violation, one step a line, each with its resulting state. */
export function describeSchedule({ schedule }: Violation): string {
  const { steps, continuation } = schedule;
  const lines = steps.map(
    ({ description, state }, index) => `  ${String(index + 1).padStart(4)}. ${description}\n        ${state}`,
  );
  if (continuation.length > 0) {
    lines.push("        From here on no faults occur. The continuation:");
    lines.push(...continuation.map(({ description, state }) => `     -  ${description}\n        ${state}`));
  }
  return lines.join("\n");
}

export function describeProgress(name: string, { states, depth, seconds }: Progress): string {
  return `${name}: ${thousands(states)} states, depth ${depth}, ${seconds.toFixed(0)} s`;
}

function figures({ states, transitions, depth, seconds, memory }: Exploration): string {
  const size = `${thousands(states)} states, ${thousands(transitions)} transitions, depth ${depth}`;
  return `${size}, ${seconds.toFixed(1)} s, ${Math.ceil(memory / 1e6)} MB`;
}

function thousands(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, " ");
}
