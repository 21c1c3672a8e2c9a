import type { Step } from "../explorer/model.ts";
import { absent, flags, others, phases, type StateLayout } from "./state-layout.ts";

type DescribeStep = (attempt: string, node: string, answer: string) => string;

const stepDescriptions: Readonly<Record<string, DescribeStep>> = {
  start: (attempt) => `${attempt} requests the lock from all nodes`,
  "start extension": (attempt) => `${attempt} starts a round of extension: extend to all nodes`,
  "release lease": (attempt) => `${attempt} releases its lease`,
  acquire: (attempt, node, answer) => `${node} executes acquire of ${attempt}: ${answer}`,
  refill: (attempt, node, answer) => `${node} executes acquire of ${attempt}, as a refill: ${answer}`,
  extend: (attempt, node, answer) => `${node} executes extend of ${attempt}: ${answer}`,
  receive: (attempt, node, answer) => `${attempt} receives the reply of ${node}: ${answer}`,
  drop: (attempt, node) => `${node} drops the grant of ${attempt}`,
};

export function describeStep({ rule, attempt, node, detail }: Step): string {
  return stepDescriptions[rule]?.(nameOf(attempt), `node ${node + 1}`, describeReply(detail)) ?? rule;
}

function nameOf(attempt: number): string {
  return String.fromCharCode(65 + attempt);
}

function describeReply(detail: number): string {
  if (detail === absent) {
    return "no grant";
  }
  return detail === others || detail === 0 ? "another holder" : `granted, number ${detail}`;
}

const phaseNames: readonly string[] = Object.keys(phases);

export function describe(layout: StateLayout): string {
  const nodes = Array.from({ length: layout.nodes }, (_, n) => {
    const holder = layout.holder(n);
    return `${n + 1}: ${holder > 0 ? `${nameOf(holder - 1)}'s #${layout.fence(n)}` : "free"}`;
  });
  const attempts = Array.from({ length: layout.attempts }, (_, a) => {
    const members = Array.from({ length: layout.nodes }, (__, n) => {
      const member = layout.member(a, n);
      const counts = layout.has(a, n, flags.counts) ? "+" : "";
      if (member === others) {
        return "yes";
      }
      return member > 0 ? `#${member}${counts}` : "-";
    });
    return `${nameOf(a)} ${phaseNames[layout.phase(a)]}, members ${members.join(" ")}`;
  });
  return [...nodes, ...attempts].join("; ");
}
