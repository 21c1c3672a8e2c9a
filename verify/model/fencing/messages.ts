import type { Step } from "../explorer/model.ts";
import { phases, type StateLayout } from "./state-layout.ts";

type DescribeStep = (attempt: string, node: string, detail: number) => string;

const stepDescriptions: Readonly<Record<string, DescribeStep>> = {
  start: (attempt, _, candidate) => `${attempt} asks all nodes, with the candidate ${candidate}`,
  propose: (attempt, _, number) =>
    `${attempt} has a majority and no agreement: asks all to agree on ${number}`,
  "give up": (attempt) => `${attempt} gives up`,
  "give back": (attempt) => `the validity of ${attempt} ends, or it releases`,
  acquire: (attempt, node, number) => `${node} executes acquire of ${attempt}: number ${number}`,
  "acquire again": (attempt, node, number) => `${node} executes acquire of ${attempt} again: ${number} still`,
  agree: (attempt, node, number) => `${node} executes agree of ${attempt}: answers ${number}`,
  "acquire, heard": (attempt, node, number) =>
    `${node} executes acquire of ${attempt}, which hears ${number}`,
  "acquire again, heard": (attempt, node, number) =>
    `${node} executes acquire of ${attempt} again, which hears ${number}`,
  "agree, heard": (attempt, node, number) => `${node} executes agree of ${attempt}, which hears ${number}`,
  hear: (attempt, node, number) => `${attempt} hears ${number} from ${node}`,
  drop: (attempt, node) => `${node} lets go of the grant of ${attempt}`,
  restart: (_, node) => `${node} restarts and has forgotten everything`,
  "quarantine ends": (_, node) => `${node} is up for longer than any TTL: it votes again`,
};

export function describeStep({ rule, attempt, node, detail }: Step): string {
  return stepDescriptions[rule]?.(nameOf(attempt), `node ${node + 1}`, detail) ?? rule;
}

function nameOf(attempt: number): string {
  return String.fromCharCode(65 + attempt);
}

const phaseNames: readonly string[] = Object.keys(phases);

export function describe(layout: StateLayout): string {
  const nodes = Array.from({ length: layout.nodes }, (_, n) => {
    const holder = layout.holder(n);
    const quarantine = layout.isQuarantined(n) ? ", quarantined" : "";
    return `${n + 1}: ${holder > 0 ? nameOf(holder - 1) : "free"} #${layout.fence(n)}${quarantine}`;
  });
  const attempts = Array.from({ length: layout.attempts }, (_, a) => {
    const token = layout.token(a) > 0 ? ` with token ${layout.token(a)}` : "";
    const votes = Array.from({ length: layout.nodes }, (__, n) => layout.vote(a, n) || "-").join(" ");
    const isSeeking = layout.phase(a) === phases.seeking;
    const known = isSeeking ? `, round ${layout.round(a)}, heard ${votes}` : "";
    return `${nameOf(a)} ${phaseNames[layout.phase(a)]}${token}${known}`;
  });
  return [...nodes, ...attempts].join("; ");
}
