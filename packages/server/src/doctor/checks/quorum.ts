import { formatDuration } from "../duration.ts";
import type { ServerFacts, Deployment } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { finding, type CheckResult } from "./check.ts";

/** The findings about the servers of a quorum together. */
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
            ? "a majority of these nodes is all of them, so one failed node stops every lock"
            : `the quorum tolerates no more failures than with ${count - 1} nodes, and ties are more likely`,
          fix: "use an odd number of at least 3 nodes; five nodes tolerate two failures",
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
        impact: "its vote counts twice, so fewer servers than a majority can grant a lock",
        fix: "use independent servers",
      }),
    );
}

/** Nodes that are replicas, or have replicas that may be promoted, are not independent. */
function dependentNodes(nodes: readonly ServerFacts[]): CheckResult[] {
  return nodes.flatMap(({ node, info }) => [
    info.get("cluster_enabled") === "1" &&
      finding("critical", "quorum-of-cluster", {
        observed: `${node} belongs to a Redis Cluster`,
        impact: "its votes migrate and fail over without the quorum's rules, so two majorities are possible",
        fix: "use servers without cluster-enabled",
      }),
    Number(info.get("connected_slaves") ?? 0) > 0 &&
      finding("risk", "node-with-replicas", {
        observed: `${node} has ${info.get("connected_slaves")} replicas`,
        impact: "if a replica is promoted, votes are lost, so two majorities are possible",
        fix: "use no automatic failover for a node: the other nodes are the failover",
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
          observed: `the nodes run the release lines ${[...lines].join(", ")}`,
          impact: "a bug in one version can affect a majority, and several versions are harder to operate",
          fix: "run one version on all nodes, except during a rolling upgrade",
        }),
      ]
    : [];
}

/** Compares the clocks of the nodes. A clock that is set during a lease ends that lease early. */
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
          "one clock was set or is not synchronized; setting it during a lease can expire the grant early, with a second holder",
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
          impact: "each round of votes reduces the validity, and several rounds leave none",
          fix: "use a longer TTL, or nearer nodes",
        }),
      ]
    : [];
}

function pairs<T>(items: readonly T[]): [T, T][] {
  return items.flatMap((a, index) => items.slice(index + 1).map((b) => [a, b] as [T, T]));
}
