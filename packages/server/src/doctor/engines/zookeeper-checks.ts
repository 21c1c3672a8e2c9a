import type { NodeState } from "holdfast";

import type { Finding } from "../finding.ts";

type Check = (nodes: readonly NodeState[]) => readonly Finding[];

export function checkZooKeeper(nodes: readonly NodeState[]): Finding[] {
  return checks.flatMap((check) => check(nodes));
}

function isOlder(version: string | null, [major, minor]: readonly [number, number]): boolean {
  const [, ownMajor, ownMinor] = /^(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  return (
    ownMajor !== undefined &&
    (Number(ownMajor) < major || (Number(ownMajor) === major && Number(ownMinor) < minor))
  );
}

const checks: readonly Check[] = [
  (nodes) =>
    nodes
      .filter(({ reachable }) => !reachable)
      .map(({ node, error }) => ({
        level: "risk",
        id: "unreachable",
        node,
        observed: `the server does not reply: ${error}`,
        impact: "the ensemble survives fewer further outages, and clients lose time with this server",
        fix: "start the server, or remove it from the URL",
      })),
  (nodes) =>
    nodes
      .filter(({ role }) => role === "standalone")
      .map(({ node }) => ({
        level: "risk",
        id: "standalone",
        node,
        observed: "the server is no member of an ensemble",
        impact: "an outage of the server stops all locks, and a loss of its disk loses all grants",
        fix: "run an ensemble of three or five servers",
      })),
  (nodes) =>
    nodes
      .filter(({ role }) => nodes.length === 1 && (role === "leader" || role === "follower"))
      .map(({ node, role }) => ({
        level: "risk",
        id: "one-server-in-url",
        node,
        observed: `the server is a ${role} of an ensemble, and the URL names no other member`,
        impact: "an outage of this server stops all locks, although the ensemble continues",
        fix: "name all members in the URL, separated by commas",
      })),
  (nodes) =>
    nodes
      .filter(({ role }) => role === "observer")
      .map(({ node }) => ({
        level: "perf",
        id: "observer",
        node,
        observed: "the server is an observer",
        impact: "each grant and extension makes one more hop, to the leader and back",
        fix: "name the voting members in the URL",
      })),
  (nodes) =>
    nodes
      .filter(({ version }) => isOlder(version, [3, 5]))
      .map(({ node, version }) => ({
        level: "critical",
        id: "unsupported-version",
        node,
        observed: `the server has version ${version}`,
        impact: "the driver needs container nodes, which version 3.5 introduced, so no lock can be acquired",
        fix: "upgrade the server",
      })),
  (nodes) =>
    nodes
      .filter(({ version }) => isOlder(version, [3, 8]) && !isOlder(version, [3, 5]))
      .map(({ node, version }) => ({
        level: "info",
        id: "old-version",
        node,
        observed: `the server has version ${version}`,
        impact: "the version no longer gets security fixes",
        fix: "upgrade the server",
      })),
  (nodes) =>
    nodes
      .filter(({ reachable, version }) => reachable && version === null)
      .map(({ node }) => ({
        level: "info",
        id: "unknown-version",
        node,
        observed: "the server does not answer the command srvr",
        impact: "its version and role are not known",
        fix: "allow the command",
        command: "4lw.commands.whitelist=srvr",
      })),
];
