import type { Step } from "../explorer/model.ts";
import { flags, notHolder, phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";

const requestNames: ReadonlyMap<number, string> = new Map([
  [flags.acquire, "acquire"],
  [flags.yield, "yield"],
  [flags.agree, "agree"],
]);

type DescribeStep = (client: string, node: string, detail: number) => string;

const stepDescriptions: Readonly<Record<string, DescribeStep>> = {
  start: (client) => `${client} requests the lock from all nodes`,
  "release lease": (client) => `${client} releases its lease: release to all nodes`,
  settled: (client) => `the nodes of ${client} agree on its number: it holds the lock`,
  cancel: (client) => `${client} abandons its request: release to all nodes`,
  die: (client) => `${client} dies`,
  freeze: (client) => `${client} freezes`,
  resend: (client, node) => `${client} repeats its request to ${node}`,
  acquire: (client, node) => `${node} executes acquire of ${client}`,
  yield: (client, node, y) => `${node} executes yield of ${client} of number ${y}`,
  release: (client, node) => `${node} executes release of ${client}`,
  "start extension": (client) => `${client} extends its lease: extend to all nodes`,
  extend: (client, node) => `${node} executes extend of ${client}`,
  agree: (client, node, t) => `${node} executes agree of ${client} on ${t}`,
  "acquire twice": (client, node) => `${node} executes acquire of ${client}; once more later`,
  "yield twice": (client, node, y) => `${node} executes yield of ${client} of number ${y}; once more later`,
  "extend twice": (client, node) => `${node} executes extend of ${client}; once more later`,
  "release twice": (client, node) => `${node} executes release of ${client}; once more later`,
  "start refill": (client, node) => `${client} no longer has the grant of ${node}, and refills the node`,
  refill: (client, node) => `${node} executes refill of ${client}`,
  "refill twice": (client, node) => `${node} executes refill of ${client}; once more later`,
  "drop entry": (client, node) =>
    `${node} drops the queue entry of ${client}: it has expired, or its client is not subscribed`,
  serve: (_, node) => `an unrelated operation finds ${node} free: the node grants to the first waiter`,
  break: (client, node) => `an operator ends the grant of ${client} at ${node}`,
  "agree twice": (client, node, t) => `${node} executes agree of ${client} on ${t}; once more later`,
  grant: (client, node, number) => `${client} receives its grant by ${node}, number ${number}`,
  "grant, another round": (client, node, number) =>
    `${client} receives its grant by ${node}, number ${number}; its nodes must agree on a number`,
  inquiry: (client, node, number) => `${client} receives an inquiry of ${node} for number ${number}`,
  agreement: (client, node, answer) =>
    answer === notHolder
      ? `${client} learns that ${node} cannot agree, because another attempt holds the grant`
      : `${client} learns that its number at ${node} is ${answer}`,
  lose: (client, node, request) => `${requestNames.get(request)} of ${client} to ${node} is lost`,
  "lose a grant": (client, node, number) => `the grant of ${node} to ${client}, number ${number}, is lost`,
  "lose an inquiry": (client, node, number) => `the inquiry of ${node} to ${client} for ${number} is lost`,
  expire: (client, node) => `the TTL of ${client} at ${node} ends`,
  restart: (_, node) => `${node} restarts without its data`,
  "vote expires": (client, node) => `the vote of ${node} for ${client} from before its restart expires`,
  "quarantine ends": (_, node) => `${node} has run for longer than any TTL: it votes again`,
  poll: () => "no message is in transit: every waiter polls",
};

export function describeStep({ rule, attempt, node, detail }: Step): string {
  return stepDescriptions[rule]?.(clientName(attempt), `node ${node + 1}`, detail) ?? rule;
}

/** A is the earliest by ticket. */
function clientName(attempt: number): string {
  return String.fromCharCode(65 + attempt);
}

export function describe(layout: StateLayout): string {
  const nodes = Array.from({ length: layout.nodes }, (_, n) => describeNode(layout, n));
  const clients = Array.from({ length: layout.attempts }, (_, a) => describeClient(layout, a));
  return [...nodes, ...clients].join("; ");
}

function describeNode(layout: StateLayout, n: number): string {
  const holder = layout.holder(n);
  const waiters = Array.from({ length: layout.attempts }, (_, a) => a).filter(
    (a) => (layout.queue(n) & (1 << a)) !== 0,
  );
  const description = [
    holder > 0 ? `${n + 1}: ${clientName(holder - 1)}'s #${layout.fence(n)}` : `${n + 1}: free`,
    ...(waiters.length > 0 ? [`queue ${waiters.map(clientName).join("")}`] : []),
    ...(layout.isQuarantined(n) ? ["quarantined"] : []),
  ];
  return description.join(", ");
}

const phaseNames: ReadonlyMap<number, string> = new Map(
  Object.entries(phases).map(([name, phase]) => [phase, name]),
);

function describeClient(layout: StateLayout, a: number): string {
  const known = Array.from({ length: layout.nodes }, (_, n) => {
    const vote = layout.vote(a, n);
    const yielded = layout.yielded(a, n);
    return `${vote > 0 ? `#${vote}` : "-"}${yielded > 0 ? `>${yielded}` : ""}`;
  });
  const phase = phaseNames.get(layout.phase(a)) ?? "";
  return layout.isActive(a)
    ? `${clientName(a)} ${phase}, votes ${known.join(" ")}`
    : `${clientName(a)} ${phase}`;
}
