import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** How a majority keeps a grant: section 4.8. */
export const extension: readonly Mutant[] = [
  {
    name: "adoption-takes-the-first-majority",
    brokenRule:
      "an adopted lease lasts until the time that a majority reaches, whichever nodes answer first (4.3)",
    edits: [redis("redlock/verification", " && restMs > maxRemainingMs / 2;", ";")],
    killers: [byKept()],
  },
  {
    name: "refilled-behind-the-end",
    brokenRule:
      "nodes that miss the key may be filled again only after a majority confirmed the unbroken hold (4.8)",
    edits: [
      redis(
        "redlock/renewal",
        "if (remainingValidityMs(validity, clock) > 0) {\n        grant.validUntil",
        "if (this.#validities.length > 0) {\n        grant.validUntil",
      ),
      lua("quorum/node-operations", "if now_ms > tonumber(latest) or holder", "if holder"),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "nothing is put back by what is heard behind")],
  },
  {
    name: "a-majority-of-those-that-answer",
    brokenRule: "extension needs ⌊N/2⌋ + 1 of all N nodes (4.8)",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/renewal",
        "    if (this.#validities.length >= nodeSet.majority) {\n      const validity = validityOf(this.#validities, nodeSet.majority);",
        "    const missing = nodeSet.nodes.filter((node) => grant.members.of(node) === undefined);\n    if (this.#validities.length >= nodeSet.majority || (isComplete && this.#validities.length > missing.length)) {\n      const validity = validityOf(this.#validities, nodeSet.majority);",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/extension",
        "it takes a majority of all nodes, not of those that answer",
      ),
    ],
  },
  {
    name: "another-grant-of-the-token-counts-as-unbroken",
    brokenRule:
      "counting only those that have held it without a break since the last confirmed majority (4.8)",
    edits: [
      redis(
        "redlock/grant-members",
        "if (member.first === first && isSameRun) {",
        "if (first > 0 && isSameRun) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/extension",
        "a node where the grant has another number has lost it meanwhile",
      ),
    ],
  },
  {
    name: "a-filled-node-counts-in-the-same-round",
    brokenRule: "and count from the next round on (4.8)",
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
        "a node that has it since later does not count before a majority has confirmed it",
      ),
    ],
  },
  {
    name: "a-restarted-node-counts-as-unbroken",
    brokenRule: "without a break (4.8): not a node that restarted with what it had on its disk",
    edits: [
      redis(
        "redlock/grant-members",
        "const isSameRun = member.runId === reply.runId || node.guard.isDurable;",
        'const isSameRun = member.runId !== "" || node.guard.isDurable;',
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/queue-members", "a node that restarted with what it had on its disk"),
    ],
  },
  {
    name: "nodes-are-filled-without-a-majority",
    brokenRule:
      "nodes that miss the key may be filled again only after a majority confirmed the unbroken hold in this round (4.8)",
    edits: [
      redis(
        "redlock/renewal",
        "    if (this.#isConfirmed) {\n      action();",
        "    if (this.#isConfirmed || this.#afterConfirm.length === 0) {\n      action();",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/extension", "and nothing is put back where none is")],
  },
  {
    name: "unknown-is-lost",
    brokenRule: "unknown is neither held past validUntil nor lost before it (4.8)",
    edits: [
      redis(
        "redlock/renewal",
        'return { outcome: "unknown", error: broadcast.error(grant.key) };',
        'return { outcome: "lost", reason: grant.members.lossReason };',
      ),
    ],
    killers: [byServer("integration/redlock/extension", "goes on if it answers before the validity is over")],
  },
  {
    name: "one-node-s-loss-is-the-grant-s",
    brokenRule: "a lease is lost where those without it leave less than a majority (4.8)",
    edits: [
      redis(
        "redlock/grant-members",
        "this.#isLost ||= nodes.length - this.#withoutGrant.size < majority;",
        "this.#isLost ||= this.#withoutGrant.size > 0 && nodes.length >= majority;",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/queue-members",
        "a node that has lost it, and says so before the others",
      ),
    ],
  },
  {
    name: "who-was-filled-too-late-keeps-it",
    brokenRule: "release goes to all nodes (4.7): also to one that was filled again when the lease was over",
    edits: [
      redis(
        "redlock/held-grant",
        "        if (this.isEnded || this.isLost) {\n",
        '        if ((this.isEnded || this.isLost) && this.token === "") {\n',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/late-requests",
        "a node that is filled again behind the release is given back",
      ),
    ],
  },
  {
    name: "adopted-for-as-long-as-those-who-answer-first-have-it",
    brokenRule:
      "the largest time until which a majority is valid (4.3), where the first to answer have no time left",
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
        "adopting waits for all where those who answer first have it for 3 ms more",
      ),
    ],
  },
  {
    name: "a-node-is-filled-again-behind-the-release",
    brokenRule: "nodes that miss the key may be filled again (4.8): not of what is given back",
    edits: [
      redis(
        "redlock/held-grant",
        "if (this.isEnded || this.numbers === undefined) {",
        "if (this.numbers === undefined) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "that it lacks the lease is not filled again")],
  },
  {
    name: "a-loss-is-revived",
    brokenRule: "a lease is lost where those without it leave less than a majority, at any time (4.8)",
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
    killers: [byRules("drivers/redis/redlock/renewal", "behind a loss does not revive the lease")],
  },
];
