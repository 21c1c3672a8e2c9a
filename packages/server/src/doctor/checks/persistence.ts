import { numberOf, settingOf, type Deployment, type ServerFacts } from "../facts.ts";
import { formatDuration } from "../duration.ts";
import { finding, type Check } from "./check.ts";

/** Whether the server forces each write to its disk before its reply, except during a rewrite of its file. */
function isDurable(facts: ServerFacts): boolean {
  return facts.info.get("aof_enabled") === "1" && settingOf(facts, "appendfsync") === "always";
}

/** The `restartGuard` of the clients of a quorum. Null: there is no quorum. */
function restartGuardOf({ address }: Deployment): string | null {
  return address.topology === "quorum" ? (address.query.get("restartGuard") ?? "wait") : null;
}

const persistence: Check = (facts, use) => {
  if (facts.info.get("aof_enabled") === undefined || isDurable(facts)) {
    return undefined;
  }
  const hasLog = facts.info.get("aof_enabled") === "1";
  const observed = hasLog
    ? `appendfsync is ${settingOf(facts, "appendfsync") ?? "unknown"}`
    : `no append-only file${settingOf(facts, "save") ? "; snapshots only" : ""}`;
  switch (restartGuardOf(use)) {
    case null:
      return finding(hasLog ? "risk" : "critical", "persistence", {
        observed,
        impact: hasLog
          ? "a crash of the machine loses the locks of the last second, and these get a second holder"
          : "a restart loses all locks, or those since the last snapshot, and these get a second holder",
        fix: "write every change to disk before the reply, or use a quorum; and check fencing tokens. Each write of every program then waits for the disk. A crash loses all locks until the first rewrite of the file has ended",
        command: "CONFIG SET appendfsync always; CONFIG SET appendonly yes",
      });
    case "off":
      return finding("critical", "persistence", {
        observed,
        impact:
          "after a restart this node has lost its votes and votes at once, because restartGuard is off: two holders",
        fix: "set restartGuard to wait",
      });
    case "trust-durable":
      return finding("risk", "persistence", {
        observed,
        impact:
          "restartGuard is trust-durable, and this node does not keep that promise: it waits after a restart, and two holders are possible if its settings change for less than a minute",
        fix: "set restartGuard to wait; or start the node with appendonly yes, appendfsync always and no-appendfsync-on-rewrite no in its configuration, and change them never at run time",
      });
    default:
      return finding("info", "persistence", {
        observed,
        impact: `after a restart this node has lost its votes, and does not vote for ${formatDuration(guardedMs(use))}`,
        fix: "no action is needed",
      });
  }
};

/** How long a restarted node does not vote. */
function guardedMs({ maxTtlMs }: Deployment): number {
  return maxTtlMs + 3_000;
}

const restarted: Check = (facts, use) => {
  const guard = restartGuardOf(use);
  const isGuarded = guard === "wait" || guard === "trust-durable";
  const uptimeMs = (numberOf(facts, "uptime_in_seconds") ?? Infinity) * 1_000;
  const longestMs = guard === null ? use.ttlMs : guardedMs(use);
  // Whether the run before was durable is not known. A guard waits in any case.
  if (uptimeMs > longestMs || (isDurable(facts) && !isGuarded)) {
    return undefined;
  }
  return finding(isGuarded ? "info" : "critical", "restarted", {
    observed: `it started ${formatDuration(uptimeMs)} ago`,
    impact: isGuarded
      ? `the node may have lost earlier votes, and does not vote yet${guard === "wait" ? "" : " for a client that did not see its earlier run"}`
      : `locks that the restart lost may still be held for up to ${formatDuration(longestMs)}, and can have a second holder now`,
    fix: isGuarded
      ? "wait; a majority of the other nodes votes"
      : "start no work that the former holders may still do",
  });
};

const writesFail: Check = (facts) =>
  (["aof_last_write_status", "rdb_last_bgsave_status", "aof_last_bgrewrite_status"] as const).map((name) => {
    const status = facts.info.get(name);
    return (
      status !== undefined &&
      status !== "ok" &&
      finding("risk", "disk-writes-fail", {
        observed: `${name} is ${status}`,
        impact:
          "the server may refuse writes (stop-writes-on-bgsave-error), so acquires fail and held locks are lost",
        fix: "check the disk and the server's log",
      })
    );
  });

const rewrites: Check = (facts, use) =>
  restartGuardOf(use) !== "wait" && // a node that waits may lose writes
  facts.info.get("aof_enabled") === "1" &&
  settingOf(facts, "no-appendfsync-on-rewrite") === "yes" &&
  finding("risk", "no-fsync-on-rewrite", {
    observed: "no-appendfsync-on-rewrite is yes",
    impact: "during a rewrite of the file no write is forced to disk, so a crash of the machine loses locks",
    fix: "force writes to disk during rewrites too",
    command: "CONFIG SET no-appendfsync-on-rewrite no",
  });

const forks: Check = (facts, { ttlMs }) => {
  const forkMs = (numberOf(facts, "latest_fork_usec") ?? 0) / 1_000;
  return (
    forkMs > ttlMs / 20 &&
    finding("perf", "slow-fork", {
      observed: `the last fork stopped the server for ${formatDuration(forkMs)}`,
      impact: "renewals wait for the fork, and locks with a short TTL are lost",
      fix: "take snapshots on a replica, store less data, disable transparent huge pages",
    })
  );
};

export const persistenceChecks: readonly Check[] = [persistence, restarted, writesFail, rewrites, forks];
