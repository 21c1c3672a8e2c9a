import type { Redis } from "ioredis";

import { shown } from "../../duration.ts";
import { parseInfo, settingOf, type Facts, type Use } from "../facts.ts";
import type { Finding } from "../finding.ts";
import { found, type Check, type Found } from "./check.ts";

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
export async function examineCluster(client: Redis, nodes: readonly ClusterNode[]): Promise<Finding[]> {
  const info = parseInfo(String(await client.call("CLUSTER", "INFO")));
  const primaries = nodes.filter(({ flags, slots }) => flags.includes("master") && slots !== "");
  const alone = primaries.filter(
    ({ id }) => !nodes.some(({ primaryId, flags }) => primaryId === id && flags.includes("slave")),
  );
  return [...state(info), ...shape(primaries, alone), ...moving(nodes)]
    .filter(Boolean)
    .map((one) => ({ ...(one as Finding), node: "cluster" }));
}

function state(info: ReadonlyMap<string, string>): Found[] {
  const failing = Number(info.get("cluster_slots_fail") ?? 0) + Number(info.get("cluster_slots_pfail") ?? 0);
  return [
    info.get("cluster_state") !== "ok" &&
      found("risk", "cluster-state", {
        observed: `cluster_state is ${info.get("cluster_state")}`,
        danger: "no lock can be had or renewed, at least not of the slots that are not served",
        advice: "look at the nodes that fail, and whether all 16384 slots have one",
      }),
    failing > 0 &&
      found("risk", "failing-slots", {
        observed: `${failing} slots are of nodes that fail, or seem to`,
        danger: "their locks cannot be renewed, and are lost; a failover may forget fresh ones",
        advice: "look at these nodes",
      }),
  ];
}

function shape(primaries: readonly ClusterNode[], alone: readonly ClusterNode[]): Found[] {
  return [
    primaries.length < 3 &&
      found("risk", "few-primaries", {
        observed: `${primaries.length} primaries`,
        danger: "without a majority of primaries there is no failover, and no locks of a shard that is down",
        advice: "three at least",
      }),
    alone.length > 0 &&
      found("risk", "primary-without-replica", {
        observed: `without a replica: ${alone.map(({ host, port }) => `${host}:${port}`).join(", ")}`,
        danger:
          "when it is down its locks cannot be had until it is back, and then it may have forgotten them",
        advice: "a replica for each primary",
      }),
  ];
}

function moving(nodes: readonly ClusterNode[]): Found[] {
  const count = nodes.reduce((sum, { slots }) => sum + (slots.match(/->-|-<-/g)?.length ?? 0), 0);
  return [
    count > 0 &&
      found("info", "moving-slots", {
        observed: `${count} slots are on their way to another node`,
        danger: "locks of several keys may be refused for a moment (TRYAGAIN) and are asked for again",
        advice: "finish the move",
      }),
  ];
}

const coverage: Check = (facts) =>
  settingOf(facts, "cluster-require-full-coverage") === "yes" &&
  found("info", "full-coverage", {
    observed: "cluster-require-full-coverage is yes",
    danger:
      "one slot that is not served stops every lock, also those of other slots: safe, and less available",
    advice: "your choice: no lets the other slots go on",
  });

const readsWhenDown: Check = (facts) => [
  settingOf(facts, "cluster-allow-reads-when-down") === "yes" &&
    found("info", "reads-when-down", {
      observed: "cluster-allow-reads-when-down is yes",
      danger: "inspect may show what is long over; no lock is had by a read",
      advice: "no",
    }),
  settingOf(facts, "cluster-allow-pubsubshard-when-down") === "yes" &&
    found("info", "messages-when-down", {
      observed: "cluster-allow-pubsubshard-when-down is yes",
      danger: "none: a message of a minority is looked at with a question before anybody goes in",
      advice: "nothing has to be done",
    }),
];

const minority: Check = (facts, { ttlMs }: Use) => {
  const timeoutMs = Number(settingOf(facts, "cluster-node-timeout") ?? 0);
  return [
    timeoutMs > 0 &&
      found(timeoutMs > ttlMs / 2 ? "risk" : "info", "minority-window", {
        observed: `cluster-node-timeout is ${shown(timeoutMs)}, the TTL ${shown(ttlMs)}`,
        danger: "a primary that is cut off grants locks for that long, which its successor knows nothing of",
        advice:
          "let grants wait for replicas (minReplicas); a timeout of less than half of the TTL; and check fencing tokens",
      }),
    ttlMs < timeoutMs &&
      found("risk", "ttl-shorter-than-failover", {
        observed: `the TTL is ${shown(ttlMs)}; a failover begins after ${shown(timeoutMs)}`,
        danger: "every holder of that shard loses its lock in a failover, as nobody can renew that long",
        advice: "a TTL longer than a failover takes",
      }),
  ];
};

const noFailover: Check = (facts) => {
  const factor = Number(
    settingOf(facts, "cluster-replica-validity-factor", "cluster-slave-validity-factor") ?? 10,
  );
  return [
    settingOf(facts, "cluster-replica-no-failover", "cluster-slave-no-failover") === "yes" &&
      found("info", "no-automatic-failover", {
        observed: "cluster-replica-no-failover is yes",
        danger: "nothing is forgotten by a failover; the locks of a shard wait until somebody acts",
        advice: "your choice",
      }),
    factor === 0 &&
      found("risk", "stale-replica-may-lead", {
        observed: "cluster-replica-validity-factor is 0",
        danger:
          "a replica that was cut off for long may take over, and has forgotten all locks since: second holders",
        advice: "the default of 10",
        command: "CONFIG SET cluster-replica-validity-factor 10",
      }),
  ];
};

/** Of each primary of a cluster. */
export const clusterChecks: readonly Check[] = [coverage, readsWhenDown, minority, noFailover];

/** What all primaries say alike is told once. */
export function saidByAll(findings: readonly Finding[], primaries: readonly Facts[]): Finding[] {
  const isSaidByAll = (one: Finding): boolean =>
    primaries.length > 1 &&
    findings.filter(({ id, observed }) => id === one.id && observed === one.observed).length ===
      primaries.length;
  const [common, own] = [findings.filter(isSaidByAll), findings.filter((one) => !isSaidByAll(one))];
  const once = common.filter((one, index) => common.findIndex(({ id }) => id === one.id) === index);
  return [...own, ...once.map((one) => ({ ...one, node: `all ${primaries.length} primaries` }))];
}
