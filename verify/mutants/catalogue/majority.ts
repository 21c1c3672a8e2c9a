import { byRules, byServer, bySim, lua, redis, type Mutant } from "../mutant.ts";

/** How votes are asked for, settled and given back: section 4, but for extension. */
export const majority: readonly Mutant[] = [
  {
    name: "half-of-the-nodes-is-a-majority",
    brokenRule: "majority = ⌊N/2⌋ + 1 of all N (4.3)",
    edits: [
      redis("redlock/majority", "return Math.floor(nodeCount / 2) + 1;", "return Math.ceil(nodeCount / 2);"),
    ],
    killers: [byRules("drivers/redis/redlock/majority", "are a majority: any two have a node in common")],
  },
  {
    name: "equal-tickets-are-not-told-apart",
    brokenRule: "ties are broken by the member's bytes, as the sorted set does (4.1)",
    hasCounterexample: true,
    edits: [lua("common/queue", "      return byte < other_byte\n", "      return false\n")],
    killers: [
      bySim(1, 60),
      byServer(
        "drivers/redis/protocol/scripts/vote-inquiry",
        "of two with the same ticket the first by its bytes is earlier",
      ),
    ],
  },
  {
    name: "equal-tickets-are-both-earlier",
    brokenRule: "ties are broken by the member's bytes, as the sorted set does (4.1)",
    hasCounterexample: true,
    edits: [lua("common/queue", "      return byte < other_byte\n", "      return true\n")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/vote-inquiry",
        "of two with the same ticket the first by its bytes is earlier",
      ),
    ],
  },
  {
    name: "tickets-of-a-driver-are-not-increasing",
    brokenRule: "a request's ticket is strictly increasing within a driver instance (4.1)",
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
    brokenRule: "a request's ticket is strictly increasing within a driver instance (4.1)",
    edits: [
      redis(
        "redlock/node-set",
        "Math.max(this.#lastTicket + 1, Math.floor(now))",
        "Math.max(this.#lastTicket, Math.floor(now))",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/lost-replies", "places that are asked for at one moment differ"),
    ],
  },
  {
    name: "ticket-by-the-client-s-own-clock",
    brokenRule: "a ticket is an estimate of the nodes' median time (4.1)",
    edits: [
      redis(
        "redlock/node-set",
        "const now = this.#clock.now() * 1000 + (this.#medianOffset() ?? 0);",
        "const now = this.#clock.wall() * 1000;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "waiters stand in the order in which they came")],
  },
  {
    name: "only-voters-are-released",
    brokenRule: "release and cancel go to all nodes, votes or not (4.7)",
    edits: [
      redis(
        "redlock/held-grant",
        "return this.#residue?.nodes[node.index]?.mayExist ?? true;",
        "return this.members.of(node) !== undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "what a late node has is released with the rest")],
  },
  {
    name: "a-late-vote-is-left-there",
    brokenRule: "a grant whose reply was lost is cleaned up too (4.7)",
    edits: [
      redis(
        "redlock/grant-registry",
        "    if (!release) {\n      cleanUp();",
        "    if (!release) {\n      return;",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/late-requests",
        "what is granted behind its own giving back is given back again",
      ),
    ],
  },
  {
    name: "tries-that-share-the-nodes-all-lose",
    brokenRule: "the try queues for one node timeout and settles by rule 5: somebody wins (4.4)",
    edits: [
      redis(
        "redlock/request",
        '      case "split":\n        this.#settleTry();\n',
        '      case "split":\n        this.#finishTry();\n',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "of two tries that share the nodes one wins")],
  },
];
