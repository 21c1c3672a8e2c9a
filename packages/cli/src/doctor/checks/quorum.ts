import { formatDuration } from "../../duration.ts";
import type { ServerFacts, Deployment } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { finding, type CheckResult } from "./check.ts";

/** What is wrong with the servers of a quorum together: alone each may be fine. */
export function checkQuorum(nodes: readonly ServerFacts[], asked: number, use: Deployment): Finding[] {
  return [
    ...size(asked),
    ...sameServer(nodes),
    ...dependentNodes(nodes),
    ...versions(nodes),
    ...clockSkew(nodes, use),
    ...farNodes(nodes, use),
  ].map((one) => ({ ...(one as Finding), node: "all" }));
}

function size(count: number): CheckResult[] {
  const tooFew = count < 3;
  return tooFew || count % 2 === 0
    ? [
        finding(tooFew ? "critical" : "risk", "quorum-size", {
          observed: `${count} nodes`,
          impact: tooFew
            ? "a majority of so few needs all of them: one that is down stops every lock"
            : `no more may be down than with ${count - 1}, and a tie is more likely`,
          fix: "an odd number from 3 on; five bear two that are down",
        }),
      ]
    : [];
}

function sameServer(nodes: readonly ServerFacts[]): CheckResult[] {
  return pairs(nodes)
    .filter(([a, b]) => a.info.has("run_id") && a.info.get("run_id") === b.info.get("run_id"))
    .map(([a, b]) =>
      finding("critical", "same-server", {
        observed: `${a.node} and ${b.node} are the same server (run_id ${a.info.get("run_id")})`,
        impact: "its vote counts twice: it alone can make a majority with half of the others",
        fix: "servers that are independent of each other",
      }),
    );
}

/** A node that follows another, or is followed and replaced, does not vote by itself. */
function dependentNodes(nodes: readonly ServerFacts[]): CheckResult[] {
  return nodes.flatMap(({ node, info }) => [
    info.get("cluster_enabled") === "1" &&
      finding("critical", "quorum-of-cluster", {
        observed: `${node} belongs to a Redis Cluster`,
        impact: "its votes move and fail over without us: two majorities are possible",
        fix: "servers without cluster-enabled",
      }),
    Number(info.get("connected_slaves") ?? 0) > 0 &&
      finding("risk", "node-with-replicas", {
        observed: `${node} has ${info.get("connected_slaves")} replicas`,
        impact:
          "if something lets a replica take its place, votes are forgotten: two majorities are possible",
        fix: "no automatic failover behind a node: another node is the failover",
      }),
  ]);
}

function versions(nodes: readonly ServerFacts[]): CheckResult[] {
  const lines = new Set(
    nodes.map(({ info }) =>
      (info.get("valkey_version") ?? info.get("redis_version") ?? "?").split(".", 2).join("."),
    ),
  );
  return lines.size > 1
    ? [
        finding("info", "mixed-versions", {
          observed: `the nodes are of the lines ${[...lines].join(", ")}`,
          impact:
            "a fault of one line is not that of a minority, if most have it; and each is one more to know",
          fix: "one line, but while you upgrade node by node",
        }),
      ]
    : [];
}

/** How long their clocks are set does not matter to a TTL, but to who is first. */
function clockSkew(nodes: readonly ServerFacts[], { ttlMs, driftFactor }: Deployment): CheckResult[] {
  const budgetMs = ttlMs * driftFactor;
  return pairs(nodes)
    .map(([a, b]) => ({
      a,
      b,
      apartMs: Math.abs((a.clock?.offsetMs ?? 0) - (b.clock?.offsetMs ?? 0)),
      unsureMs: (a.clock?.uncertaintyMs ?? Infinity) + (b.clock?.uncertaintyMs ?? Infinity),
    }))
    .filter(({ apartMs: differenceMs, unsureMs: uncertaintyMs }) => differenceMs - uncertaintyMs > budgetMs)
    .map(({ a, b, apartMs: differenceMs, unsureMs: uncertaintyMs }) =>
      finding("critical", "clock-skew", {
        observed: `the clocks of ${a.node} and ${b.node} are ${formatDuration(differenceMs)} apart (within ${uncertaintyMs.toFixed(1)} ms)`,
        impact:
          "one of them was set or is not kept right; if it is set while a lock is held, that lock ends early: a second holder",
        fix: "let chrony or ntpd slew every clock, without steps (makestep only at the start)",
      }),
    );
}

function farNodes(nodes: readonly ServerFacts[], { ttlMs }: Deployment): CheckResult[] {
  const worst = Math.max(0, ...nodes.map(({ clock }) => 2 * (clock?.uncertaintyMs ?? 0)));
  return worst > ttlMs / 20
    ? [
        finding("perf", "far-nodes", {
          observed: `the best of nine round trips to the farthest node took ${formatDuration(worst)}, the TTL is ${formatDuration(ttlMs)}`,
          impact: "each round of votes eats from the validity; with some retries nothing is left of it",
          fix: "a longer TTL, or nodes that are nearer",
        }),
      ]
    : [];
}

function pairs<T>(items: readonly T[]): [T, T][] {
  return items.flatMap((a, index) => items.slice(index + 1).map((b) => [a, b] as [T, T]));
}
