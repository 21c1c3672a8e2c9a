import { shown } from "../../duration.ts";
import type { Facts, Use } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { found, type Found } from "./check.ts";

/** What is wrong with the servers of a quorum together: alone each may be fine. */
export function examineQuorum(nodes: readonly Facts[], asked: number, use: Use): Finding[] {
  return [
    ...size(asked),
    ...sameServer(nodes),
    ...tied(nodes),
    ...versions(nodes),
    ...skew(nodes, use),
    ...slow(nodes, use),
  ].map((one) => ({ ...(one as Finding), node: "all" }));
}

function size(count: number): Found[] {
  const few = count < 3;
  return few || count % 2 === 0
    ? [
        found(few ? "danger" : "risk", "quorum-size", {
          observed: `${count} nodes`,
          danger: few
            ? "a majority of so few needs all of them: one that is down stops every lock"
            : `no more may be down than with ${count - 1}, and a tie is more likely`,
          advice: "an odd number from 3 on; five bear two that are down",
        }),
      ]
    : [];
}

function sameServer(nodes: readonly Facts[]): Found[] {
  return pairs(nodes)
    .filter(([a, b]) => a.info.has("run_id") && a.info.get("run_id") === b.info.get("run_id"))
    .map(([a, b]) =>
      found("danger", "same-server", {
        observed: `${a.node} and ${b.node} are the same server (run_id ${a.info.get("run_id")})`,
        danger: "its vote counts twice: it alone can make a majority with half of the others",
        advice: "servers that are independent of each other",
      }),
    );
}

/** A node that follows another, or is followed and replaced, does not vote by itself. */
function tied(nodes: readonly Facts[]): Found[] {
  return nodes.flatMap(({ node, info }) => [
    info.get("cluster_enabled") === "1" &&
      found("danger", "quorum-of-cluster", {
        observed: `${node} belongs to a Redis Cluster`,
        danger: "its votes move and fail over without us: two majorities are possible",
        advice: "servers without cluster-enabled",
      }),
    Number(info.get("connected_slaves") ?? 0) > 0 &&
      found("risk", "node-with-replicas", {
        observed: `${node} has ${info.get("connected_slaves")} replicas`,
        danger:
          "if something lets a replica take its place, votes are forgotten: two majorities are possible",
        advice: "no automatic failover behind a node: another node is the failover",
      }),
  ]);
}

function versions(nodes: readonly Facts[]): Found[] {
  const lines = new Set(
    nodes.map(({ info }) =>
      (info.get("valkey_version") ?? info.get("redis_version") ?? "?").split(".", 2).join("."),
    ),
  );
  return lines.size > 1
    ? [
        found("info", "mixed-versions", {
          observed: `the nodes are of the lines ${[...lines].join(", ")}`,
          danger:
            "a fault of one line is not that of a minority, if most have it; and each is one more to know",
          advice: "one line, but while you upgrade node by node",
        }),
      ]
    : [];
}

/** How long their clocks are set does not matter to a TTL, but to who is first. */
function skew(nodes: readonly Facts[], { ttlMs, driftFactor }: Use): Found[] {
  const budgetMs = ttlMs * driftFactor;
  return pairs(nodes)
    .map(([a, b]) => ({
      a,
      b,
      apartMs: Math.abs((a.clock?.offsetMs ?? 0) - (b.clock?.offsetMs ?? 0)),
      unsureMs: (a.clock?.uncertaintyMs ?? Infinity) + (b.clock?.uncertaintyMs ?? Infinity),
    }))
    .filter(({ apartMs, unsureMs }) => apartMs - unsureMs > budgetMs)
    .map(({ a, b, apartMs, unsureMs }) =>
      found("danger", "clock-skew", {
        observed: `the clocks of ${a.node} and ${b.node} are ${shown(apartMs)} apart (within ${unsureMs.toFixed(1)} ms)`,
        danger:
          "one of them was set or is not kept right; if it is set while a lock is held, that lock ends early: a second holder",
        advice: "let chrony or ntpd slew every clock, without steps (makestep only at the start)",
      }),
    );
}

function slow(nodes: readonly Facts[], { ttlMs }: Use): Found[] {
  const worst = Math.max(0, ...nodes.map(({ clock }) => 2 * (clock?.uncertaintyMs ?? 0)));
  return worst > ttlMs / 20
    ? [
        found("perf", "far-nodes", {
          observed: `the best of nine round trips to the farthest node took ${shown(worst)}, the TTL is ${shown(ttlMs)}`,
          danger: "each round of votes eats from the validity; with some retries nothing is left of it",
          advice: "a longer TTL, or nodes that are nearer",
        }),
      ]
    : [];
}

function pairs<T>(all: readonly T[]): [T, T][] {
  return all.flatMap((a, index) => all.slice(index + 1).map((b) => [a, b] as [T, T]));
}
