import { byRules, byServer, bySim, edit, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the agreement of nodes on one fencing number. */
export const fencing: readonly Mutant[] = [
  {
    name: "fencing-without-the-second-round",
    brokenRule:
      "if no majority reported one number, the client writes the largest on all nodes, and their replies are the next round",
    edits: [
      redis(
        "redlock/majority",
        "return reports.find((one) => reports.filter((other) => isSame(one, other)).length >= majority);",
        "return reports.length >= majority && reports.some((one) => isSame(one, one)) ? [...reports].sort((one, other) => other.first - one.first)[0] : undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "only an equal number confirms")],
  },
  {
    name: "larger-number-counts-as-agreement",
    brokenRule: "only equal values count: a node with a larger number does not agree",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/majority",
        "return one.first === other.first && one.last === other.last",
        "return one.first <= other.first",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/redlock/majority", "a larger number is no agreement"),
      byRules("drivers/redis/redlock/rules", "only an equal number confirms"),
    ],
  },
  {
    name: "acknowledgement-without-its-value",
    brokenRule: "only equal values count: an acknowledgement must have the number",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/fencing-agreement",
        "      voteRequest.record(raised);\n",
        "      voteRequest.record({ ...raised, first: this.#proposed, last: this.#proposed + raised.last - raised.first });\n",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "only an equal number confirms")],
  },
  {
    name: "reports-of-different-rounds-add-up",
    brokenRule: "the token is a first number that a majority of nodes reported in the same round",
    edits: [redis("redlock/majority", " && one.round === other.round;", ";")],
    killers: [byRules("drivers/redis/redlock/majority", "reports of different rounds do not add up")],
  },
  {
    name: "blocks-are-compared-by-their-first",
    brokenRule: "a block of k numbers is written and compared as a whole",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/majority",
        "one.first === other.first && one.last === other.last && ",
        "one.first === other.first && ",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/majority", "blocks are compared as a whole")],
  },
  {
    name: "reports-the-last-of-a-block",
    brokenRule: "a node always reports the first number of a block",
    hasCounterexample: true,
    edits: [
      lua(
        "quorum/extend",
        "return is_quorum and { 1, grant_numbers() or 0 } or 1",
        "return is_quorum and { 1, (select(2, grant_numbers())) or 0 } or 1",
      ),
    ],
    killers: [
      bySim(1, 60),
      byServer(
        "drivers/redis/protocol/scripts/quorum-replies",
        "an extension and a verify get the number of",
      ),
    ],
  },
  {
    name: "agreeing-lowers-a-number",
    brokenRule: "agree never lowers a number: first = max(first, t)",
    edits: [
      lua(
        "quorum/node-operations",
        "if not first or first < number then",
        "if not first or first ~= number then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/agree", "never lowers the number, and")],
  },
  {
    name: "agreeing-on-another-s-grant",
    brokenRule: "agree only writes on nodes whose grant has our token",
    edits: [
      lua(
        "quorum/node-operations",
        "  if holder ~= token then\n    return { 0 }",
        "  if not holder then\n    return { 0 }",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/agree", "is refused without the grant")],
  },
  {
    name: "agreed-number-is-a-single-one",
    brokenRule: "agree writes a block of k numbers as a whole",
    hasCounterexample: true,
    edits: [
      lua(
        "quorum/node-operations",
        "first, last = number, number + fence_count - 1",
        "first, last = number, number",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/agree", "raises the number of the grant")],
  },
  {
    name: "smaller-number-counts-after-the-proposal",
    brokenRule: "after the client writes the largest number, a smaller reported number no longer counts",
    edits: [
      redis("redlock/fencing-agreement", "if (range && range.first >= this.#proposed) {", "if (range) {"),
      redis(
        "redlock/fencing-agreement",
        "      if (hasAgreed) {\n        this.#attempt.handleLateReply(",
        "      if (hasAgreed && !vote) {\n        this.#attempt.handleLateReply(",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/regressions", "a number that is being raised on the nodes is no longer"),
    ],
  },
  {
    name: "late-agreement-is-not-counted",
    brokenRule: "a node that agrees late has the agreed number from then on",
    edits: [
      redis(
        "redlock/fencing-agreement",
        "      if (hasAgreed) {\n        this.#attempt.handleLateReply(",
        "      if (hasAgreed && !vote) {\n        this.#attempt.handleLateReply(",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/renewal", "a node that agreed on the number after the decision counts"),
    ],
  },
  {
    name: "proposes-the-smallest-number",
    brokenRule: "without a common number the client writes the largest one",
    edits: [
      redis(
        "redlock/fencing-agreement",
        "this.#proposed = Math.max(...votes.map(({ first }) => first));",
        "this.#proposed = Math.min(...votes.map(({ first }) => first));",
      ),
    ],
    killers: [bySim(1, 60), byRules("drivers/redis/redlock/candidates")],
  },
  {
    name: "candidate-does-not-follow",
    brokenRule: "the offset of candidates follows every reply: offset = max(offset, number − now)",
    edits: [
      redis(
        "redlock/node-set",
        "this.#lead = Math.max(this.#lead, number - this.#clock.now() * 1000);",
        "this.#lead = Math.max(this.#lead, this.#lead + 0 * number);",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/candidates")],
  },
  {
    name: "a-number-inside-a-block-is-current",
    brokenRule:
      "checkFence: a number inside a block is unknown, because the server does not know hand-overs in memory",
    edits: [
      redis(
        "server/lock-snapshot",
        'return fencingToken === last ? "current" : "unknown";',
        'return fencingToken <= last ? "current" : "unknown";',
      ),
    ],
    killers: [byRules("fake-redis/fake-redis", "a lease that was handed over in memory is never current")],
  },
  {
    name: "a-number-is-reported-as-the-last-before-a-hand-over",
    brokenRule: "a lease is reported as the last one of its grant only if it is handed over no more",
    edits: [
      edit("lease/engine-requests.ts", "const isLast = !host.mayHandOver(lease);", "const isLast = true;"),
    ],
    killers: [
      byRules("drivers/memory/driver", "a lease that was handed over in memory is never current"),
      byRules("fake-redis/fake-redis", "a lease that was handed over in memory is never current"),
    ],
  },
  {
    name: "the-last-number-is-not-reported",
    brokenRule: "checkFence in another process knows the holder of a contended key",
    edits: [
      edit(
        "lease/lease-state.ts",
        "    const isDue = this.grant.fencingCount > 1 &&",
        "    const isDue = this.grant.fencingCount < 1 &&",
      ),
    ],
    killers: [
      byRules("lease/lease-waiting", "a lease that is handed over no more is reported to the engine once"),
    ],
  },
  {
    name: "the-last-number-of-a-free-key-is-current",
    brokenRule: "checkFence: a number is stale if the lease with this token does not hold the key",
    edits: [redis("server/lock-snapshot", "clientIdOf(snapshot.holder) === undefined", "false as boolean")],
    killers: [byRules("fake-redis/fake-redis", "the holder's fencing token is current")],
  },
  {
    name: "a-handed-over-lease-is-judged-without-the-server",
    brokenRule: "checkFence: the server is checked too, because the process may have lost its lease",
    edits: [
      edit(
        "local/coordinator.ts",
        'return outcome === "valid" && own.isHeld ? "current" : "stale";',
        'return outcome === "valid" || own.isHeld ? "current" : "stale";',
      ),
    ],
    killers: [
      byRules(
        "lease/lease-numbers",
        "a lease that the server has lost is stale for its own process without a notification",
      ),
    ],
  },
  {
    name: "one-node-makes-a-number-current",
    brokenRule:
      "checkFence: on a quorum a number is current only if a majority has the token and gave the number",
    edits: [redis("redlock/inspect/lock-view", "issuing.length < majority", "issuing.length === 0")],
    killers: [
      byRules(
        "drivers/redis/redlock/inspect/lock-view",
        "a fencing token is current if a majority granted it, and refused if",
      ),
    ],
  },
  {
    name: "number-before-the-holder-s-is-not-stale",
    brokenRule:
      "checkFence: a number is stale if its lease was released, has expired, or a later grant exists",
    edits: [
      redis("server/lock-snapshot", "fencingToken < newest || fencingToken > last", "fencingToken > last"),
    ],
    killers: [byRules("fake-redis/fake-redis", "a lease that was handed over in memory is never current")],
  },
  {
    name: "a-number-that-no-lease-has-is-not-stale",
    brokenRule: "checkFence: a number is current only if the lease with this token holds the key",
    edits: [
      redis("server/lock-snapshot", "fencingToken < newest || fencingToken > last", "fencingToken < newest"),
    ],
    killers: [byRules("fake-redis/fake-redis", "a fencing token that no lease has is stale")],
  },
];
