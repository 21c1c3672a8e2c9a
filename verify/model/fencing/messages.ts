import type { Step } from "../explorer/model.ts";
import { phases, type StateLayout } from "./state-layout.ts";

type DescribeStep = (attempt: string, node: string, detail: number) => string;

const stepDescriptions: Readonly<Record<string, DescribeStep>> = {
  start: (attempt, _, candidate) =>
    `${attempt} requests the lock from all nodes, with the candidate ${candidate}`,
  propose: (attempt, _, number) =>
    `${attempt} has a majority and no agreement: sends agree on ${number} to all`,
  abandon: (attempt) => `${attempt} stops waiting`,
  "release lease": (attempt) => `the validity of ${attempt} ends, or it releases`,
  acquire: (attempt, node, number) => `${node} executes acquire of ${attempt}: number ${number}`,
  "acquire again": (attempt, node, number) => `${node} executes acquire of ${attempt} again: ${number} still`,
  agree: (attempt, node, number) => `${node} executes agree of ${attempt}: replies ${number}`,
  "acquire, received": (attempt, node, number) =>
    `${node} executes acquire of ${attempt}, which receives ${number}`,
  "acquire again, received": (attempt, node, number) =>
    `${node} executes acquire of ${attempt} again, which receives ${number}`,
  "agree, received": (attempt, node, number) =>
    `${node} executes agree of ${attempt}, which receives ${number}`,
  receive: (attempt, node, number) => `${attempt} receives ${number} from ${node}`,
  drop: (attempt, node) => `${node} drops the grant of ${attempt}`,
  restart: (_, node) => `${node} restarts without its data`,
  "quarantine ends": (_, node) => `${node} has run for longer than any TTL: it votes again`,
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
    const known = isSeeking ? `, round ${layout.round(a)}, received ${votes}` : "";
    return `${nameOf(a)} ${phaseNames[layout.phase(a)]}${token}${known}`;
  });
  return [...nodes, ...attempts].join("; ");
}
