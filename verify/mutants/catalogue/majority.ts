import { byRules, byServer, bySim, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of votes and majorities. Inquiries are in yields.ts, and extension in extension.ts. */
export const majority: readonly Mutant[] = [
  {
    name: "half-of-the-nodes-is-a-majority",
    brokenRule: "a majority is ⌊N/2⌋ + 1 of all N nodes",
    edits: [
      redis("redlock/majority", "return Math.floor(nodeCount / 2) + 1;", "return Math.ceil(nodeCount / 2);"),
    ],
    killers: [byRules("drivers/redis/redlock/majority", "are a majority: any two majorities")],
  },
  {
    name: "equal-tickets-have-no-order",
    brokenRule: "the bytes of the queue entries break ties, as in the sorted set",
    hasCounterexample: true,
    edits: [lua("common/queue", "      return byte < other_byte\n", "      return false\n")],
    killers: [
      bySim(1, 60),
      byServer("drivers/redis/protocol/scripts/vote-inquiry", "orders two requests with the same ticket by"),
    ],
  },
  {
    name: "equal-tickets-are-both-earlier",
    brokenRule: "the bytes of the queue entries break ties, as in the sorted set",
    hasCounterexample: true,
    edits: [lua("common/queue", "      return byte < other_byte\n", "      return true\n")],
    killers: [
      byServer("drivers/redis/protocol/scripts/vote-inquiry", "orders two requests with the same ticket by"),
    ],
  },
  {
    name: "tickets-of-a-driver-are-not-increasing",
    brokenRule: "the tickets of a driver instance strictly increase",
    edits: [
      redis(
        "server/server-clock",
        "Math.max(this.#tickets.last + 1, this.micros())",
        "Math.max(this.#tickets.last, this.micros())",
      ),
    ],
    killers: [byRules("drivers/redis/server/server-clock", "tickets rise strictly")],
  },
  {
    name: "tickets-for-a-quorum-are-not-increasing",
    brokenRule: "the tickets of a driver instance strictly increase",
    edits: [
      redis(
        "redlock/node-set",
        "Math.max(this.#lastTicket + 1, Math.floor(now))",
        "Math.max(this.#lastTicket, Math.floor(now))",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/lost-replies", "queue entries of one moment differ")],
  },
  {
    name: "ticket-by-the-client-s-own-clock",
    brokenRule: "a ticket is an estimate of the nodes' median time",
    edits: [
      redis(
        "redlock/node-set",
        "const now = this.#clock.now() * 1000 + (this.#medianOffset() ?? 0);",
        "const now = this.#clock.wall() * 1000;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "waiters are ordered by their arrival")],
  },
  {
    name: "only-voters-are-released",
    brokenRule: "release and cancel go to all nodes, with or without a vote",
    edits: [
      redis(
        "redlock/held-grant",
        "return this.#residue?.nodes[node.index]?.mayExist ?? true;",
        "return this.members.of(node) !== undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "the vote of a late node is released")],
  },
  {
    name: "late-vote-is-not-cleaned-up",
    brokenRule: "a grant with a lost reply is cleaned up too",
    edits: [
      redis(
        "redlock/grant-registry",
        "    } else {\n      cleanUp();\n    }\n  }\n\n  /**\n   * A node granted",
        "    }\n  }\n\n  /**\n   * A node granted",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/late-requests", "a grant that follows its own release is released"),
    ],
  },
  {
    name: "tries-that-split-the-votes-all-fail",
    brokenRule:
      "concurrent tries queue for one node timeout and resolve split votes, so one of them is granted",
    edits: [
      redis(
        "redlock/request",
        '      case "split":\n        this.#breakTie();\n',
        '      case "split":\n        this.#finishTry();\n',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "of two tries that share the nodes one wins")],
  },
];
