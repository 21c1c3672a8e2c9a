/** The TTL of all leases on a quorum, and Holdfast's `maxTtlMs` there. */
export const longestTtlMs = 10_000;

/** The uptime from which Holdfast counts a node's votes. A node with a shorter uptime may have lost leases in a restart. */
export const uptimeToVoteMs: number = longestTtlMs + 3_000;
