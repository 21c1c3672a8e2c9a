import type { Redis } from "ioredis";

import { formatDuration } from "../../duration.ts";
import { parseInfo, settingOf, type ServerFacts, type Deployment } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { finding, type Check, type CheckResult } from "./check.ts";

/** A node as `CLUSTER NODES` tells it. */
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

/** What is wrong with the cluster as a whole. */
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
        impact: "no lock can be had or renewed, at least not of the slots that are not served",
        fix: "look at the nodes that fail, and whether all 16384 slots have one",
      }),
    failing > 0 &&
      finding("risk", "failing-slots", {
        observed: `${failing} slots are of nodes that fail, or seem to`,
        impact: "their locks cannot be renewed, and are lost; a failover may forget fresh ones",
        fix: "look at these nodes",
      }),
  ];
}

function shape(primaries: readonly ClusterNode[], alone: readonly ClusterNode[]): CheckResult[] {
  return [
    primaries.length < 3 &&
      finding("risk", "few-primaries", {
        observed: `${primaries.length} primaries`,
        impact: "without a majority of primaries there is no failover, and no locks of a shard that is down",
        fix: "three at least",
      }),
    alone.length > 0 &&
      finding("risk", "primary-without-replica", {
        observed: `without a replica: ${alone.map(({ host, port }) => `${host}:${port}`).join(", ")}`,
        impact:
          "when it is down its locks cannot be had until it is back, and then it may have forgotten them",
        fix: "a replica for each primary",
      }),
  ];
}

function moving(nodes: readonly ClusterNode[]): CheckResult[] {
  const count = nodes.reduce((sum, { slots }) => sum + (slots.match(/->-|-<-/g)?.length ?? 0), 0);
  return [
    count > 0 &&
      finding("info", "moving-slots", {
        observed: `${count} slots are on their way to another node`,
        impact: "locks of several keys may be refused for a moment (TRYAGAIN) and are asked for again",
        fix: "finish the move",
      }),
  ];
}

const coverage: Check = (facts) =>
  settingOf(facts, "cluster-require-full-coverage") === "yes" &&
  finding("info", "full-coverage", {
    observed: "cluster-require-full-coverage is yes",
    impact:
      "one slot that is not served stops every lock, also those of other slots: safe, and less available",
    fix: "your choice: no lets the other slots go on",
  });

const readsWhenDown: Check = (facts) => [
  settingOf(facts, "cluster-allow-reads-when-down") === "yes" &&
    finding("info", "reads-when-down", {
      observed: "cluster-allow-reads-when-down is yes",
      impact: "inspect may show what is long over; no lock is had by a read",
      fix: "no",
    }),
  settingOf(facts, "cluster-allow-pubsubshard-when-down") === "yes" &&
    finding("info", "messages-when-down", {
      observed: "cluster-allow-pubsubshard-when-down is yes",
      impact: "none: a message of a minority is looked at with a question before anybody goes in",
      fix: "nothing has to be done",
    }),
];

const minorityPartition: Check = (facts, { ttlMs }: Deployment) => {
  const timeoutMs = Number(settingOf(facts, "cluster-node-timeout") ?? 0);
  return [
    timeoutMs > 0 &&
      finding(timeoutMs > ttlMs / 2 ? "risk" : "info", "minority-window", {
        observed: `cluster-node-timeout is ${formatDuration(timeoutMs)}, the TTL ${formatDuration(ttlMs)}`,
        impact: "a primary that is cut off grants locks for that long, which its successor knows nothing of",
        fix: "let grants wait for replicas (minReplicas); a timeout of less than half of the TTL; and check fencing tokens",
      }),
    ttlMs < timeoutMs &&
      finding("risk", "ttl-shorter-than-failover", {
        observed: `the TTL is ${formatDuration(ttlMs)}; a failover begins after ${formatDuration(timeoutMs)}`,
        impact: "every holder of that shard loses its lock in a failover, as nobody can renew that long",
        fix: "a TTL longer than a failover takes",
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
        impact: "nothing is forgotten by a failover; the locks of a shard wait until somebody acts",
        fix: "your choice",
      }),
    factor === 0 &&
      finding("risk", "stale-replica-may-lead", {
        observed: "cluster-replica-validity-factor is 0",
        impact:
          "a replica that was cut off for long may take over, and has forgotten all locks since: second holders",
        fix: "the default of 10",
        command: "CONFIG SET cluster-replica-validity-factor 10",
      }),
  ];
};

/** Of each primary of a cluster. */
export const clusterChecks: readonly Check[] = [coverage, readsWhenDown, minorityPartition, noFailover];

/** What all primaries say alike is told once. */
export function commonAnswer(findings: readonly Finding[], primaries: readonly ServerFacts[]): Finding[] {
  const isCommon = (one: Finding): boolean =>
    primaries.length > 1 &&
    findings.filter(({ id, observed }) => id === one.id && observed === one.observed).length ===
      primaries.length;
  const [common, own] = [findings.filter(isCommon), findings.filter((one) => !isCommon(one))];
  const once = common.filter((one, index) => common.findIndex(({ id }) => id === one.id) === index);
  return [...own, ...once.map((one) => ({ ...one, node: `all ${primaries.length} primaries` }))];
}
