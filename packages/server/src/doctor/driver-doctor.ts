import type { Driver, NodeState } from "holdfast";

import { UnreachableError } from "./errors.ts";
import { checkNacos } from "./engines/nacos-checks.ts";
import { checkZooKeeper } from "./engines/zookeeper-checks.ts";
import { sortFindings, type Diagnosis, type Finding } from "./finding.ts";

/** The reply of a driver about the servers of its locks. */
interface Report {
  readonly engine: string;
  readonly guarantee: Driver["capabilities"]["guarantee"];
  readonly nodes: readonly NodeState[];
  readonly ttlMs: number;
}

type Check = (report: Report) => readonly Finding[];

/**
 * Checks what a driver reports about its servers, for a service that has no URL of them. The last finding says what was not read.
 * @throws {UnreachableError} if no server replies
 */
export async function diagnoseDriver(driver: Driver, { ttlMs }: { ttlMs: number }): Promise<Diagnosis> {
  const { engine = "other", guarantee } = driver.capabilities;
  const nodes = await driver.nodes();
  if (nodes.length > 0 && nodes.every(({ reachable }) => !reachable)) {
    throw new UnreachableError(nodes.map(({ node, error }) => `${node}: ${error}`).join("; "));
  }
  const report = { engine, guarantee, nodes, ttlMs };
  return {
    topology: engine,
    nodes: nodes.map(({ node }) => node),
    findings: sortFindings([...checksOf(engine), ...commonChecks].flatMap((check) => check(report))),
    probe: null,
  };
}

function checksOf(engine: string): readonly Check[] {
  switch (engine) {
    case "nacos":
      return [({ nodes, ttlMs }) => checkNacos({ nodes, ttlMs, hasUser: undefined })];
    case "zookeeper":
      return [({ nodes }) => checkZooKeeper(nodes)];
    default:
      return [unreachable, role, clusterState];
  }
}

const unreachable: Check = ({ nodes }) =>
  nodes
    .filter(({ reachable }) => !reachable)
    .map(({ node, error }) => ({
      level: "risk",
      id: "unreachable",
      node,
      observed: error ?? "no reply",
      impact: "the locks survive one failure less",
      fix: "check the server and the network",
    }));

const role: Check = ({ nodes }) =>
  nodes
    .filter((one) => one.role !== null && /^(slave|replica|standby)$/.test(one.role))
    .map((one) => ({
      level: "critical",
      id: "not-a-primary",
      node: one.node,
      observed: `its role is ${one.role}`,
      impact: "this server accepts no writes, so no lock can be acquired or extended",
      fix: "use the address of the primary",
    }));

const clusterState: Check = ({ nodes }) =>
  nodes
    .filter(({ cluster }) => typeof cluster?.state === "string" && cluster.state !== "ok")
    .map(({ node, cluster }) => ({
      level: "risk",
      id: "cluster-state",
      node,
      observed: `expected cluster_state ok, got ${cluster?.state}`,
      impact: "locks cannot be acquired or renewed, at least in the slots without a node",
      fix: "repair the failed nodes, and check that all 16384 slots have a node",
    }));

const inProcess: Check = ({ guarantee, nodes }) =>
  guarantee === "process"
    ? [
        {
          level: "risk",
          id: "in-process",
          node: nodes[0]?.node ?? "memory",
          observed: "the locks are in the memory of this process",
          impact: "a restart loses all locks, and these get a second holder; no other process shares them",
          fix: "use an engine on a server, except for tests and demonstrations",
          command: "HOLDFAST_URL=redis://127.0.0.1:6379",
        },
      ]
    : [];

const quorum: Check = ({ guarantee, nodes }) =>
  guarantee === "quorum" && (nodes.length < 3 || nodes.length % 2 === 0)
    ? [
        {
          level: nodes.length < 3 ? "critical" : "risk",
          id: "quorum-size",
          node: "all",
          observed: `expected an odd number of at least 3 nodes, got ${nodes.length}`,
          impact: "the quorum tolerates no more failures than with one node less",
          fix: "use an odd number of at least 3 nodes; five nodes tolerate two failures",
        },
      ]
    : [];

const sameServer: Check = ({ nodes }) =>
  nodes.flatMap((one, index) =>
    nodes
      .slice(0, index)
      .filter(({ runId }) => runId !== null && runId === one.runId)
      .map((other) => ({
        level: "critical",
        id: "same-server",
        node: one.node,
        observed: `${other.node} and ${one.node} are the same server (run_id ${one.runId})`,
        impact: "its vote counts twice, so fewer servers than a majority can grant a lock",
        fix: "use independent servers",
      })),
  );

const quarantine: Check = ({ nodes }) =>
  nodes.flatMap(({ node, quarantine: one }) =>
    one === null
      ? []
      : [
          {
            level: "info",
            id: "quarantine",
            node,
            observed: `its votes do not count: ${one.reason}`,
            impact: "the quorum tolerates one failure less until then",
            fix: "wait; a majority of the other nodes votes",
          },
        ],
  );

const notifications: Check = ({ nodes }) =>
  nodes
    .filter((one) => one.reachable && one.notifications === "unavailable")
    .map(({ node }) => ({
      level: "perf",
      id: "no-notifications",
      node,
      observed: "notifications do not arrive",
      impact: "waiters poll, so a free lock stays idle until the next poll",
      fix: "allow the connection to subscribe, and use no proxy that drops notifications",
    }));

/** The reason why the other checks of `holdfast doctor` did not run. */
const unread: Check = ({ guarantee }) =>
  guarantee === "process"
    ? []
    : [
        {
          level: "info",
          id: "not-checked",
          node: "all",
          observed:
            "the service has a driver without the URL of its servers, so it read none of their settings",
          impact: "findings about persistence, evictions, replicas, access and versions may be missing",
          fix: "run doctor with the URL of the engine, or give the service the option `doctor`",
          command: "holdfast doctor --url <the URL of the engine>",
        },
      ];

const commonChecks: readonly Check[] = [inProcess, quorum, sameServer, quarantine, notifications, unread];
