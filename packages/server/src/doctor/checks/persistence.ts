import { numberOf, settingOf, type ServerFacts } from "../facts.ts";
import { formatDuration } from "../duration.ts";
import { finding, type Check } from "./check.ts";

/** Whether the server loses no write in a restart. */
function isDurable(facts: ServerFacts): boolean {
  return facts.info.get("aof_enabled") === "1" && settingOf(facts, "appendfsync") === "always";
}

const persistence: Check = (facts, { address, maxTtlMs }) => {
  if (facts.info.get("aof_enabled") === undefined || isDurable(facts)) {
    return undefined;
  }
  const hasLog = facts.info.get("aof_enabled") === "1";
  const observed = hasLog
    ? `appendfsync is ${settingOf(facts, "appendfsync") ?? "unknown"}`
    : `no append-only file${settingOf(facts, "save") ? "; snapshots only" : ""}`;
  if (address.topology === "quorum") {
    const isGuarded = address.query.get("restartGuard") !== "off";
    return finding(isGuarded ? "info" : "critical", "persistence", {
      observed,
      impact: isGuarded
        ? `after a restart this node has lost its votes, and does not vote for ${formatDuration(maxTtlMs + 3_000)}`
        : "after a restart this node has lost its votes and votes at once, because restartGuard is off: two holders",
      fix: isGuarded
        ? "no action is needed; with appendfsync always the node votes at once"
        : "set restartGuard to auto",
    });
  }
  return finding(hasLog ? "risk" : "critical", "persistence", {
    observed,
    impact: hasLog
      ? "a crash of the machine loses the locks of the last second, and these get a second holder"
      : "a restart loses all locks, or those since the last snapshot, and these get a second holder",
    fix: "write every change to disk before the reply, or use a quorum; and check fencing tokens",
    command: "CONFIG SET appendonly yes; CONFIG SET appendfsync always",
  });
};

const restarted: Check = (facts, { address, ttlMs, maxTtlMs }) => {
  const uptimeMs = (numberOf(facts, "uptime_in_seconds") ?? Infinity) * 1_000;
  const longestMs = address.topology === "quorum" ? maxTtlMs : ttlMs;
  if (uptimeMs > longestMs || isDurable(facts)) {
    return undefined;
  }
  const isGuarded = address.topology === "quorum" && address.query.get("restartGuard") !== "off";
  return finding(isGuarded ? "info" : "critical", "restarted", {
    observed: `it started ${formatDuration(uptimeMs)} ago`,
    impact: isGuarded
      ? "the node may have lost earlier votes, and does not vote yet"
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

const rewrites: Check = (facts) =>
  facts.info.get("aof_enabled") === "1" &&
  settingOf(facts, "no-appendfsync-on-rewrite") === "yes" &&
  finding("risk", "no-fsync-on-rewrite", {
    observed: "no-appendfsync-on-rewrite is yes",
    impact: "during a rewrite of the file no write is forced to disk, so a crash loses locks",
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
