import type { Finding } from "../finding.ts";

/** The reply of one endpoint. */
export interface Member {
  readonly node: string;
  readonly version: string;
  /** The id of the leader; undefined: the member knows none. */
  readonly leader: string | undefined;
}

export interface Facts {
  /** The endpoints that replied. */
  readonly members: readonly Member[];
  /** The endpoints of the URL. */
  readonly endpoints: readonly string[];
  /** The number of voting members; undefined: unknown. */
  readonly size: number | undefined;
  /** The alarms of the cluster, for example NOSPACE. */
  readonly alarms: readonly string[];
  readonly isOpen: boolean;
  /** The duration of a write, ms; undefined: not measured. */
  readonly writeMs: number | undefined;
  readonly ttlMs: number;
}

type Check = (facts: Facts) => readonly Finding[];

/** A renewal is repeated at a third of the TTL. A write must leave time for the repeats. */
const maxWriteShare = 1 / 30;

export function checkEtcd(facts: Facts): Finding[] {
  return checks.flatMap((check) => check(facts));
}

const leader: Check = ({ members }) =>
  members
    .filter((member) => member.leader === undefined)
    .map(({ node }) => ({
      node,
      level: "critical",
      id: "no-leader",
      observed: "the member has no leader",
      impact: "without a majority no lock can be acquired or extended",
      fix: "start the other members, or repair the network between the members",
    }));

const alarms: Check = ({ alarms: raised, endpoints }) =>
  raised.map((alarm) => ({
    node: endpoints.join(","),
    level: "critical",
    id: `alarm-${alarm.toLowerCase()}`,
    observed: `the alarm ${alarm} is raised`,
    impact: "the cluster refuses writes, so no lock can be acquired",
    ...(alarm === "NOSPACE"
      ? {
          fix: "compact and defragment the members, raise --quota-backend-bytes if necessary, and then disarm the alarm",
          command: "etcdctl compact <revision> && etcdctl defrag --cluster && etcdctl alarm disarm",
        }
      : { fix: "restore the members from a backup (etcd.io/docs, disaster recovery)" }),
  }));

const size: Check = ({ size: count, endpoints }) => {
  const node = endpoints.join(",");
  if (count === 1) {
    return [
      {
        node,
        level: "risk",
        id: "single-member",
        observed: "the cluster has one member",
        impact:
          "while that member is down no lock can be acquired or extended, and its disk holds the only copy",
        fix: "run three members",
      },
    ];
  } else if (count !== undefined && endpoints.length === 1) {
    return [
      {
        node,
        level: "risk",
        id: "one-endpoint",
        observed: `the URL names one of ${count} members`,
        impact: "while that member is down this client can acquire and extend no lock",
        fix: "name all members in the URL: etcd://h1:2379,h2:2379,h3:2379",
      },
    ];
  }
  return count !== undefined && count % 2 === 0
    ? [
        {
          node,
          level: "info",
          id: "even-members",
          observed: `the cluster has ${count} members`,
          impact: `it survives the loss of ${count / 2 - 1}, like a cluster of ${count - 1}`,
          fix: "run an odd number of members",
        },
      ]
    : [];
};

const version: Check = ({ members, size: count }) =>
  members.flatMap(({ node, version: text }): Finding[] => {
    const [major = 0, minor = 0, patch = 0] = text.split(".").map((part) => Number.parseInt(part, 10));
    const order = major * 1_000_000 + minor * 1_000 + patch;
    if (order < 3_004_000) {
      return [
        {
          node,
          level: "critical",
          id: "too-old",
          observed: `version ${text}`,
          impact: "the JSON gateway of this version has other paths, so this member cannot grant locks",
          fix: "upgrade to etcd 3.5.13 or newer",
        },
      ];
    }
    const endsLeasesEarly = order < 3_004_031 || (minor === 5 && order < 3_005_013);
    return endsLeasesEarly && count !== 1
      ? [
          {
            node,
            level: "risk",
            id: "late-revocation",
            observed: `version ${text}`,
            impact: "after a change of the leader, a slow former leader may end leases that are in use",
            fix: "upgrade to etcd 3.4.31, 3.5.13 or newer (etcd issue 15247)",
          },
        ]
      : [];
  });

const access: Check = ({ isOpen, endpoints }) =>
  isOpen
    ? [
        {
          node: endpoints.join(","),
          level: endpoints.every(isLoopback) ? "risk" : "critical",
          id: "no-authentication",
          observed: "the cluster serves clients without a user",
          impact: "every client that reaches a port can acquire, break and forge every lock",
          fix: "create a user with readwrite permission on the prefix of the locks, and enable authentication",
          command: "etcdctl auth enable",
        },
      ]
    : [];

const latency: Check = ({ writeMs, ttlMs, endpoints }) =>
  writeMs !== undefined && writeMs > ttlMs * maxWriteShare
    ? [
        {
          node: endpoints.join(","),
          level: "risk",
          id: "slow-writes",
          observed: `a write takes ${Math.round(writeMs)} ms, with a TTL of ${ttlMs} ms`,
          impact: "at a peak of the load renewals may come too late, and leases are lost",
          fix: "use faster disks for the members, or a longer TTL",
        },
      ]
    : [];

const checks: readonly Check[] = [leader, alarms, size, version, access, latency];

function isLoopback(endpoint: string): boolean {
  const { hostname } = new URL(`http://${endpoint}`);
  return hostname === "localhost" || hostname.startsWith("127.") || hostname === "[::1]";
}
