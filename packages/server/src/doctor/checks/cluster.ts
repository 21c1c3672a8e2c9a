import type { Redis } from "ioredis";

import { formatDuration } from "../duration.ts";
import { parseInfo, settingOf, type ServerFacts, type Deployment } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { finding, type Check, type CheckResult } from "./check.ts";

/** A node in the reply of `CLUSTER NODES`. */
export interface ClusterNode {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly flags: readonly string[];
  readonly primaryId: string;
  readonly slots: string;
}

export async function clusterNodes(client: Redis): Promise<ClusterNode[]> {
  const text = String(await client.call("CLUSTER", "NODES"));
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [id = "", address = "", flags = "", primaryId = "", , , , , ...slots] = line.split(" ");
      const [, host = "", port = ""] = /^(.*):(\d+)@/.exec(address) ?? /^(.*):(\d+)/.exec(address) ?? [];
      return { id, host, port: Number(port), flags: flags.split(","), primaryId, slots: slots.join(" ") };
    });
}

/** The findings about the cluster as a whole. */
export async function checkCluster(client: Redis, nodes: readonly ClusterNode[]): Promise<Finding[]> {
  const info = parseInfo(String(await client.call("CLUSTER", "INFO")));
  const primaries = nodes.filter(({ flags, slots }) => flags.includes("master") && slots !== "");
  const alone = primaries.filter(
    ({ id }) => !nodes.some(({ primaryId, flags }) => primaryId === id && flags.includes("slave")),
  );
  return [...state(info), ...shape(primaries, alone), ...moving(nodes)]
    .filter(Boolean)
    .map((one) => ({ ...(one as Finding), node: "cluster" }));
}

function state(info: ReadonlyMap<string, string>): CheckResult[] {
  const failing = Number(info.get("cluster_slots_fail") ?? 0) + Number(info.get("cluster_slots_pfail") ?? 0);
  return [
    info.get("cluster_state") !== "ok" &&
      finding("risk", "cluster-state", {
        observed: `cluster_state is ${info.get("cluster_state")}`,
        impact: "locks cannot be acquired or renewed, at least in the slots without a node",
        fix: "repair the failed nodes, and check that all 16384 slots have a node",
      }),
    failing > 0 &&
      finding("risk", "failing-slots", {
        observed: `${failing} slots are of nodes that fail, or seem to`,
        impact: "their locks cannot be renewed and are lost; a failover may lose recent locks",
        fix: "repair these nodes",
      }),
  ];
}

function shape(primaries: readonly ClusterNode[], alone: readonly ClusterNode[]): CheckResult[] {
  return [
    primaries.length < 3 &&
      finding("risk", "few-primaries", {
        observed: `${primaries.length} primaries`,
        impact: "without a majority of primaries there is no failover, so a failed shard has no locks",
        fix: "run at least three primaries",
      }),
    alone.length > 0 &&
      finding("risk", "primary-without-replica", {
        observed: `without a replica: ${alone.map(({ host, port }) => `${host}:${port}`).join(", ")}`,
        impact:
          "if that primary fails, its locks are unavailable until its restart, and the restart may lose them",
        fix: "add a replica for each primary",
      }),
  ];
}

function moving(nodes: readonly ClusterNode[]): CheckResult[] {
  const count = nodes.reduce((sum, { slots }) => sum + (slots.match(/->-|-<-/g)?.length ?? 0), 0);
  return [
    count > 0 &&
      finding("info", "moving-slots", {
        observed: `${count} slots are on their way to another node`,
        impact: "requests for several keys may be refused briefly (TRYAGAIN), and are retried",
        fix: "finish the migration of the slots",
      }),
  ];
}

const coverage: Check = (facts) =>
  settingOf(facts, "cluster-require-full-coverage") === "yes" &&
  finding("info", "full-coverage", {
    observed: "cluster-require-full-coverage is yes",
    impact: "one slot without a node stops the locks of all slots: safe, but less available",
    fix: "optional: no keeps the other slots available",
  });

const readsWhenDown: Check = (facts) => [
  settingOf(facts, "cluster-allow-reads-when-down") === "yes" &&
    finding("info", "reads-when-down", {
      observed: "cluster-allow-reads-when-down is yes",
      impact: "inspect may show expired locks; acquiring is not affected",
      fix: "no",
    }),
  settingOf(facts, "cluster-allow-pubsubshard-when-down") === "yes" &&
    finding("info", "messages-when-down", {
      observed: "cluster-allow-pubsubshard-when-down is yes",
      impact: "none: a notification from a minority grants nothing until a request confirms it",
      fix: "no action is needed",
    }),
];

const minorityPartition: Check = (facts, { ttlMs }: Deployment) => {
  const timeoutMs = Number(settingOf(facts, "cluster-node-timeout") ?? 0);
  return [
    timeoutMs > 0 &&
      finding(timeoutMs > ttlMs / 2 ? "risk" : "info", "minority-window", {
        observed: `cluster-node-timeout is ${formatDuration(timeoutMs)}, the TTL ${formatDuration(ttlMs)}`,
        impact: "a partitioned primary grants locks for that time, and its successor does not know them",
        fix: "let grants wait for replicas (minReplicas); a timeout of less than half of the TTL; and check fencing tokens",
      }),
    ttlMs < timeoutMs &&
      finding("risk", "ttl-shorter-than-failover", {
        observed: `the TTL is ${formatDuration(ttlMs)}; a failover begins after ${formatDuration(timeoutMs)}`,
        impact:
          "every holder of that shard loses its lock in a failover, because renewals fail for longer than the TTL",
        fix: "use a TTL longer than a failover",
      }),
  ];
};

const noFailover: Check = (facts) => {
  const factor = Number(
    settingOf(facts, "cluster-replica-validity-factor", "cluster-slave-validity-factor") ?? 10,
  );
  return [
    settingOf(facts, "cluster-replica-no-failover", "cluster-slave-no-failover") === "yes" &&
      finding("info", "no-automatic-failover", {
        observed: "cluster-replica-no-failover is yes",
        impact: "no failover loses locks; the locks of a failed shard wait for an operator",
        fix: "your choice",
      }),
    factor === 0 &&
      finding("risk", "stale-replica-may-lead", {
        observed: "cluster-replica-validity-factor is 0",
        impact:
          "a replica that was partitioned for long may be promoted without all later locks, and these get second holders",
        fix: "use the default of 10",
        command: "CONFIG SET cluster-replica-validity-factor 10",
      }),
  ];
};

/** The checks of each primary of a cluster. */
export const clusterChecks: readonly Check[] = [coverage, readsWhenDown, minorityPartition, noFailover];

/** Merges equal findings of all primaries into one. */
export function commonAnswer(findings: readonly Finding[], primaries: readonly ServerFacts[]): Finding[] {
  const isCommon = (one: Finding): boolean =>
    primaries.length > 1 &&
    findings.filter(({ id, observed }) => id === one.id && observed === one.observed).length ===
      primaries.length;
  const [common, own] = [findings.filter(isCommon), findings.filter((one) => !isCommon(one))];
  const once = common.filter((one, index) => common.findIndex(({ id }) => id === one.id) === index);
  return [...own, ...once.map((one) => ({ ...one, node: `all ${primaries.length} primaries` }))];
}
