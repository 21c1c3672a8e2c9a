import { byRules, byServer, bySim, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of inquiries and of votes that a client yields. */
export const yields: readonly Mutant[] = [
  {
    name: "no-inquiry-is-sent",
    brokenRule:
      "a node that voted for a later ticket sends an inquiry to that holder when an earlier ticket arrives",
    edits: [
      lua(
        "quorum/acquire",
        "if client and first and precedes(token, holder) then",
        "if client and first and precedes(token, holder) and holder == '' then",
      ),
    ],
    killers: [
      bySim(1, 60),
      byServer("drivers/redis/protocol/scripts/vote-inquiry", "goes to a holder with a later ticket"),
    ],
  },
  {
    name: "later-ticket-causes-an-inquiry",
    brokenRule: "a node sends an inquiry only to a holder with a later ticket",
    edits: [lua("common/queue", "    return ticket < other_ticket\n", "    return true\n")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/vote-inquiry",
        "does not go to a holder with an earlier ticket",
      ),
    ],
  },
  {
    name: "no-yield",
    brokenRule: "a client without a majority yields after an inquiry",
    edits: [
      redis(
        "redlock/vote-yield",
        "return this.#requestedBack >= vote.first;",
        "return this.#requestedBack < 0 * vote.first;",
      ),
    ],
    killers: [bySim(1, 60), byRules("drivers/redis/redlock/vote-yield")],
  },
  {
    name: "elected-request-yields",
    brokenRule:
      "a client that holds the lock, or that has a valid majority and settles its number, ignores an inquiry",
    edits: [
      redis(
        "redlock/vote-request",
        "      !this.#host.isOpen ||\n      this.#host.hasMajority\n",
        "      !this.#host.isOpen\n",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "a request that settles the number of its")],
  },
  {
    name: "a-yielded-vote-still-counts",
    brokenRule: "after a client sends yield(token, y), a vote of that node counts only with a number above y",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/vote-request",
        "if (this.#voteYield.hasYielded(vote) || vote.first < (this.vote?.first ?? 0)) {",
        "if (vote.first < (this.vote?.first ?? 0)) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/vote-yield", "a yielded vote does not count")],
  },
  {
    name: "yield-ends-any-number",
    brokenRule: "yield(token, y) ends only a grant with the number y",
    hasCounterexample: true,
    edits: [
      lua(
        "quorum/node-operations",
        "if holder == token and grant_numbers() == tonumber(number) then",
        "if holder == token then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/yield", "a vote with another number")],
  },
  {
    name: "yielding-request-loses-its-queue-entry",
    brokenRule: "yield queues the request again at its ticket, and then grants to the first waiter",
    edits: [
      lua(
        "quorum/node-operations",
        "return acquire_free(token, token .. ' ' .. queue_args, ttl, fence_count, '2', metadata)",
        "return acquire_free(token, token .. ' ' .. queue_args, ttl, fence_count, '0', metadata)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/yield", "the vote with this number goes to the")],
  },
  {
    name: "old-inquiry-causes-a-yield",
    brokenRule: "an inquiry for a number up to y, or older than the current vote, is dropped",
    edits: [
      redis(
        "redlock/vote-yield",
        "return this.#requestedBack >= vote.first;",
        "return this.#requestedBack !== 0 * vote.first;",
      ),
      redis(
        "redlock/vote-request",
        "    this.#voteYield.begin();\n",
        "    this.#voteYield.begin(this.vote);\n",
      ),
      redis(
        "redlock/vote-yield",
        "  begin(): void {\n    this.#yielded = this.#requestedBack;\n",
        "  begin(vote: Vote): void {\n    this.#yielded = Math.max(this.#requestedBack, vote.first);\n    this.#requestedBack = 0;\n",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "an inquiry for an older number than that of")],
  },
  {
    name: "inquiry-before-the-vote-is-forgotten",
    brokenRule: "an inquiry that arrives before the reply with the vote is remembered",
    edits: [
      redis(
        "redlock/vote-request",
        "if (this.#voteYield.voteRequestedBack(number)) {",
        "if (this.vote !== undefined && this.#voteYield.voteRequestedBack(number)) {",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/vote-yield", "an inquiry that arrives before its vote is remembered"),
    ],
  },
  {
    name: "request-after-an-inquiry-waits-for-its-notification",
    brokenRule: "notifications may be lost, so a client that caused an inquiry soon repeats its request",
    edits: [
      redis(
        "redlock/majority-attempt",
        " || this.#waitsForYield;",
        ' || (this.#waitsForYield && this.token === "");',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/unsubscribed-waiters", "the earlier waiter soon requests")],
  },
  {
    name: "request-before-the-holder-repeats-too-often",
    brokenRule:
      "a client with a majority yields no vote, so no request with an earlier ticket repeats more often than a poll",
    edits: [
      redis(
        "redlock/majority-attempt",
        "return isRequested && competingVotes(voteRequests) < this.nodeSet.majority;",
        "return isRequested && competingVotes(voteRequests) <= voteRequests.length;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/unsubscribed-waiters", "a waiter that came before the holder")],
  },
  {
    name: "split-votes-are-not-requested-again",
    brokenRule: "while votes are split, acquire is repeated after 250 ms, doubling to 2 s",
    edits: [
      redis(
        "redlock/split-vote-timer",
        "      this.retryAt = clock.now() + jittered(random, delayMs, 0.5);\n",
        "      void [clock, random, delayMs, jittered];\n",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/redlock/vote-yield", "a lost inquiry is repeated while the votes are"),
    ],
  },
];
