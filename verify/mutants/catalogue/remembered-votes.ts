import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

const memory = "drivers/redis/protocol/scripts/remembered-votes";

/** Mutants of the stored votes of a quorum node, and of the number of a refill. */
export const rememberedVotes: readonly Mutant[] = [
  {
    name: "holder-that-was-not-released-is-forgotten",
    brokenRule:
      "if K disappears before the end of an unreleased holder, the node does not vote until that end",
    edits: [
      lua("quorum/remembered-votes", "'HMGET', fence, 'by', 'used'", "'HMGET', fence, 'none', 'used'"),
      lua("quorum/write-vote", "  and not kept[6]\n", ""),
    ],
    killers: [byServer(memory, "keeps the node from voting for another until its time is over"), byKept()],
  },
  {
    name: "shares-that-were-not-released-are-forgotten",
    brokenRule:
      "if K disappears before the end of an unreleased shared holder, the node does not vote until that end",
    edits: [
      lua(
        "common/shared-holders",
        "if is_quorum and not expiry and (used or 0) > 0 then",
        "if is_quorum and wait_ms < 0 then",
      ),
    ],
    killers: [byServer(memory, "of who shares is there again")],
  },
  {
    name: "vote-over-a-holder-that-was-not-released-counts-at-once",
    brokenRule: "a vote counts only after the rest of notBefore has passed",
    edits: [redis("redlock/vote", "return waitMs > 0 ? receivedAt", "return waitMs < 0 ? receivedAt")],
    killers: [byKept()],
  },
  {
    name: "waits-for-two-thirds-of-the-band",
    brokenRule: "the wait is 3 × D, because 2 × D allowed 552 double holders in 40 000 runs",
    edits: [redis("options", "return 3 * maxClockDifferenceMs;", "return 2 * maxClockDifferenceMs;")],
    killers: [byKept()],
  },
  {
    name: "later-grant-lowers-not-before",
    brokenRule: "no release, yield or break of a later grant lowers notBefore",
    edits: [
      lua(
        "quorum/remembered-votes",
        "redis.call('HDEL', fence, 'by')",
        "redis.call('HDEL', fence, 'by', 'notBefore')",
      ),
    ],
    killers: [byServer(memory, "goes on waiting whatever becomes of later ones")],
  },
  {
    name: "repeat-does-not-wait",
    brokenRule: "every vote, by reply, repeat or notification, has the rest of notBefore",
    edits: [lua("quorum/remembered-votes", "return left > 0 and left or nil", "return nil")],
    killers: [byServer(memory, "counts when its wait is over: a mutex")],
  },
  {
    name: "message-does-not-wait",
    brokenRule: "every vote, by reply, repeat or notification, has the rest of notBefore",
    edits: [lua("common/grant-waiter", "return left and ttl .. '+' .. left or ttl", "return ttl")],
    killers: [byServer(memory, "tells by a message in how many ms it counts")],
  },
  {
    name: "writer-does-not-wait-for-a-reader",
    brokenRule: "the stored votes of shared holders have their end and weight",
    edits: [
      lua(
        "common/shared-holders",
        "weight < limit and 'alone' or 'notBefore'",
        "weight < limit and 'none' or 'notBefore'",
      ),
    ],
    killers: [byServer(memory, "counts when its wait is over: a writer behind a reader"), byKept()],
  },
  {
    name: "what-was-given-up-is-waited-for",
    brokenRule: "an operation that ends a token's grant also deletes its stored vote, with or without K",
    edits: [
      lua(
        "quorum/remembered-votes",
        "return token == past and (",
        "return token == past and wait_ms < 0 and (",
      ),
    ],
    killers: [byServer(memory, "though its time was over")],
  },
  {
    name: "offer-that-nobody-heard-is-remembered",
    brokenRule: "a grant by notification without a receiver restores the former stored vote",
    edits: [
      lua("common/grant-waiter", "  if is_quorum then\n    redis.call('HDEL', fence, 'by')\n  end\n", ""),
    ],
    killers: [byServer(memory, "is not remembered by an offer that nobody heard")],
  },
  {
    name: "extension-is-not-remembered",
    brokenRule: "an extension stores the new end of the holder",
    edits: [lua("quorum/lock-context", "    remember_vote(holder, ttl)\n", "")],
    killers: [byServer(memory, "is as long as the last extension")],
  },
  {
    name: "answer-asked-for-before-a-giving-back-counts",
    brokenRule: "a release ends every earlier vote of its node, even if the reply arrives later",
    edits: [
      redis(
        "redlock/vote-request",
        "if (requestNumber <= this.#requestsBeforeCleanUp) {",
        "if (requestNumber < 0) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/remembered-votes",
        "a vote that is given back ends what was asked for before it",
      ),
    ],
  },
  {
    name: "refill-gives-a-number-of-its-own",
    brokenRule: "a refill contains the lease's number, and K stores that number",
    edits: [lua("quorum/node-operations", "if number and number <= tonumber(first) then", "if number then")],
    killers: [byServer(memory, "puts the lease's number in the place of a later one")],
  },
  {
    name: "refill-lowers-the-counter",
    brokenRule: "after a refill the counter is the larger of both numbers",
    edits: [lua("quorum/write-vote", "(tonumber(kept[2]) or 0) + 1, floor)", "floor)")],
    killers: [byServer(memory, "gives the lease's own number, and the next grant a greater one")],
  },
  {
    name: "refill-behind-the-end-of-the-lease",
    brokenRule: "a refill has a latest time, at most the end of the lease's validity",
    edits: [lua("quorum/node-operations", "if now_ms > tonumber(latest) or holder", "if holder")],
    killers: [byServer(memory, "does nothing where another has the vote")],
  },
  {
    name: "later-grant-of-the-token-is-adopted",
    brokenRule: "adoption counts a node only if K has our token with at most the lease's number",
    edits: [redis("redlock/verification", "Number(first) > fencingToken", "Number(first) < 0")],
    killers: [
      byRules(
        "drivers/redis/redlock/remembered-votes",
        "an expired lease that late requests got again is not adopted",
      ),
    ],
  },
];
