import type { NodeState } from "holdfast";

import type { Finding } from "../finding.ts";

interface Facts {
  readonly nodes: readonly NodeState[];
  readonly ttlMs: number;
  /** Whether the URL has a user; undefined: there is no URL. */
  readonly hasUser: boolean | undefined;
}

type Check = (facts: Facts) => readonly Finding[];

/** Half of the default of `maxClockDifferenceMs`, ms. */
const maxDifferenceMs = 30_000;
/** Each renewal adds a row to the history. Renewals follow each other after a third of the TTL, ms. */
const shortTtlMs = 10_000;

export function checkNacos(facts: Facts): Finding[] {
  return checks.flatMap((check) => check(facts));
}

const checks: readonly Check[] = [
  ({ nodes }) =>
    nodes
      .filter(({ reachable }) => !reachable)
      .map(({ node, error }) => ({
        level: "risk",
        id: "unreachable",
        node,
        observed: `the server does not reply: ${error}`,
        impact: "the cluster survives fewer outages, and requests to this server are delayed",
        fix: "start the server, or correct the URL",
      })),
  ({ nodes }) =>
    nodes
      .filter(({ version }) => version !== null && isOlder(version, [2, 3, 2]))
      .map(({ node, version }) => ({
        level: "critical",
        id: "too-old",
        node,
        observed: `version ${version}`,
        impact: "the compare-and-set of this version is not safe over HTTP, so the driver grants no lock",
        fix: "upgrade to Nacos 2.5 or 3",
      })),
  ({ nodes }) =>
    nodes
      .filter(({ role }) => role === "standalone")
      .map(({ node }) => ({
        level: "risk",
        id: "standalone",
        node,
        observed: "the server runs alone",
        impact: "an outage of the server stops all locks",
        fix: "run a cluster of three servers",
      })),
  ({ nodes }) =>
    nodes
      .filter(({ role }) => nodes.length === 1 && role === "cluster")
      .map(({ node }) => ({
        level: "risk",
        id: "one-server-in-url",
        node,
        observed: "the server is a member of a cluster, and the URL names no other member",
        impact: "an outage of this server stops all locks, although the cluster continues",
        fix: "name all members in the URL: nacos://h1:8848,h2:8848,h3:8848",
      })),
  ({ nodes }) => {
    const known = nodes.filter(({ clockOffsetMs }) => clockOffsetMs !== null);
    const offsets = known.map(({ clockOffsetMs }) => clockOffsetMs as number);
    const differenceMs = Math.max(...offsets) - Math.min(...offsets);
    return differenceMs > maxDifferenceMs
      ? [
          {
            level: "risk",
            id: "clocks-differ",
            node: known.map(({ node }) => node).join(","),
            observed: `the wall clocks of the servers differ by ${Math.round(differenceMs / 1_000)} s`,
            impact: "beyond `maxClockDifferenceMs` a lock can have two holders",
            fix: "synchronise the clocks of the servers",
          },
        ]
      : [];
  },
  ({ nodes, hasUser }) =>
    hasUser !== false
      ? []
      : [
          {
            level: nodes.every(({ node }) => isLoopback(node)) ? "risk" : "critical",
            id: "no-authentication",
            node: nodes.map(({ node }) => node).join(","),
            observed: "the URL has no user",
            impact: "if the servers need no user, every client can acquire, break and forge every lock",
            fix: "enable authentication, and create a user for the namespace of the locks",
            command: "nacos.core.auth.enabled=true",
          },
        ],
  ({ nodes, ttlMs }) =>
    ttlMs < shortTtlMs
      ? [
          {
            level: "perf",
            id: "short-ttl",
            node: nodes.map(({ node }) => node).join(","),
            observed: `the TTL is ${ttlMs} ms`,
            impact:
              "each renewal adds a row to the history of configurations and a change event on each server",
            fix: "use a TTL of 10 s or more",
          },
        ]
      : [],
];

function isOlder(version: string, limit: readonly number[]): boolean {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const index = limit.findIndex((part, at) => part !== (parts[at] ?? 0));
  return index >= 0 && (parts[index] ?? 0) < (limit[index] as number);
}

function isLoopback(node: string): boolean {
  const { hostname } = new URL(`http://${node}`);
  return hostname === "localhost" || hostname.startsWith("127.") || hostname === "[::1]";
}
