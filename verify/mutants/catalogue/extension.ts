import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the extension of a grant by a majority. */
export const extension: readonly Mutant[] = [
  {
    name: "adoption-takes-the-first-majority",
    brokenRule:
      "an adopted lease is valid until the latest time that a majority supports, in any order of replies",
    edits: [redis("redlock/verification", " && restMs > maxRemainingMs / 2;", ";")],
    killers: [byKept()],
  },
  {
    name: "refilled-after-the-end",
    brokenRule: "nodes without the grant may be refilled only after a majority confirmed the unbroken hold",
    edits: [
      redis(
        "redlock/renewal",
        "if (remainingValidityMs(validity, clock) > 0) {\n        grant.validUntil",
        "if (this.#validities.length > 0) {\n        grant.validUntil",
      ),
      lua("quorum/node-operations", "if now_ms > tonumber(latest) or holder", "if holder"),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "a reply after the end of the validity")],
  },
  {
    name: "majority-of-the-replies-extends",
    brokenRule: "extension needs ⌊N/2⌋ + 1 of all N nodes",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/renewal",
        "    if (this.#validities.length >= nodeSet.majority) {\n      const validity = validityOf(this.#validities, nodeSet.majority);",
        "    const answered = this.#validities.length + grant.members.missingCount;\n    if (this.#validities.length >= nodeSet.majority || (isComplete && this.#validities.length * 2 > answered)) {\n      const validity = validityOf(this.#validities, nodeSet.majority);",
      ),
      redis(
        "redlock/grant-members",
        "  of(node: QuorumNode)",
        "  get missingCount(): number {\n    return this.#withoutGrant.size;\n  }\n\n  of(node: QuorumNode)",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "an extension needs a majority of all nodes")],
  },
  {
    name: "another-grant-of-the-token-counts-as-unbroken",
    brokenRule:
      "an extension counts only nodes that have held the grant without a break since the last confirmed majority",
    edits: [
      redis(
        "redlock/grant-members",
        "if (member.first === first && isSameRun) {",
        "if (first > 0 && isSameRun) {",
      ),
      lua("quorum/extend", " and (grant_numbers() or 0) > tonumber(number) then", " and false then"),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "a node whose grant has another number has lost")],
  },
  {
    name: "refilled-node-counts-in-the-same-round",
    brokenRule: "a refilled node counts from the next round on",
    edits: [
      redis(
        "redlock/renewal",
        "    } else {\n      this.#afterConfirmation(",
        "    } else {\n      this.#validities.push(validFrom(reply.sent, this.#ttlMs, 0, this.#host.driftFactor));\n      this.#afterConfirmation(",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/extension",
        "a node that got the grant later does not count before a majority",
      ),
    ],
  },
  {
    name: "a-restarted-node-counts-as-unbroken",
    brokenRule: "a node that restarted with its data on disk has not held the grant without a break",
    edits: [
      redis(
        "redlock/grant-members",
        "const isSameRun = member.runId === reply.runId || node.guard.hasKept(member.runId);",
        'const isSameRun = member.runId !== "" || node.guard.hasKept(member.runId);',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/queue-members", "a node that restarted with the data of")],
  },
  {
    name: "nodes-are-refilled-without-a-majority",
    brokenRule:
      "nodes without the grant may be refilled only after a majority confirmed the unbroken hold in this round",
    edits: [
      redis(
        "redlock/renewal",
        "    if (this.#isConfirmed) {\n      action();",
        "    if (this.#isConfirmed || this.#afterConfirm.length === 0) {\n      action();",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "while the majority is unknown")],
  },
  {
    name: "unknown-is-lost",
    brokenRule: "after an unknown outcome a lease is not held past its validity, and not lost before",
    edits: [
      redis(
        "redlock/renewal",
        'return { outcome: "unknown", error: broadcast.error(grant.key) };',
        'return { outcome: "lost", reason: grant.members.lossReason };',
      ),
    ],
    killers: [byServer("integration/redlock/extension", "continues if the majority answers before")],
  },
  {
    name: "one-node-s-loss-is-the-grant-s",
    brokenRule: "a lease is lost if the nodes that still have it are less than a majority",
    edits: [
      redis(
        "redlock/grant-members",
        "this.#isLost ||= nodes.length - this.#withoutGrant.size < majority;",
        "this.#isLost ||= this.#withoutGrant.size > 0 && nodes.length >= majority;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/queue-members", "a node that reports a loss before the others")],
  },
  {
    name: "late-refill-is-not-released",
    brokenRule: "release goes to all nodes, and also to a node that was refilled after the end of the lease",
    edits: [
      redis(
        "redlock/held-grant",
        "        if (this.isEnded || this.isLost) {\n",
        '        if ((this.isEnded || this.isLost) && this.token === "") {\n',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "a node that is refilled after the release is")],
  },
  {
    name: "adoption-lasts-as-the-first-replies-report",
    brokenRule:
      "an adopted lease is valid until the latest time that a majority supports, even if the first replies have no remaining time",
    edits: [
      redis(
        "redlock/verification",
        "restMs > 2 * (clock.now() - startedAt) && restMs > maxRemainingMs / 2;",
        "clock.now() >= startedAt && maxRemainingMs >= 0;",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/renewal",
        "an adoption waits for all nodes if the first replies are valid for only 3 ms more",
      ),
    ],
  },
  {
    name: "node-is-refilled-after-the-release",
    brokenRule: "nodes without the grant may be refilled, but not after the release of the lease",
    edits: [
      redis(
        "redlock/held-grant",
        "if (this.isEnded || this.numbers === undefined) {",
        "if (this.numbers === undefined) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "a node that reports the missing")],
  },
  {
    name: "a-loss-is-revived",
    brokenRule: "a lease is lost if at any time the nodes that still have it are less than a majority",
    edits: [
      redis(
        "redlock/grant-members",
        "    return this.#isLost;\n  }\n\n  get lossReason",
        "    return this.#isLost && this.#nodeSet.nodes.length - this.#withoutGrant.size < this.#nodeSet.majority;\n  }\n\n  get lossReason",
      ),
      redis(
        "redlock/held-grant",
        "        if (this.isEnded || this.isLost) {\n",
        "        if (this.isEnded) {\n",
      ),
      redis("redlock/held-grant", "!this.isEnded && !this.isLost && !this", "!this.isEnded && !this"),
    ],
    killers: [byRules("drivers/redis/redlock/renewal", "a node that is refilled after")],
  },
];
