/** The TTL of all leases on a quorum, and what Holdfast is told is the largest that anybody uses there. */
export const longestTtlMs = 10_000;

/** Holdfast lets a node vote once it has been up this long: before, it might have forgotten leases in a restart. */
export const uptimeToVoteMs: number = longestTtlMs + 3_000;
