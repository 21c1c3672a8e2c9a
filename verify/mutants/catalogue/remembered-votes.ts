import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

const memory = "drivers/redis/protocol/scripts/remembered-votes";

/** Mutants of the remembered votes of a quorum node, and of the number of a refill. */
export const rememberedVotes: readonly Mutant[] = [
  {
    name: "unreleased-holder-is-forgotten",
    brokenRule:
      "if K disappears before the end of an unreleased holder, the node does not vote until that end",
    edits: [
      lua("quorum/remembered-votes", "'HMGET', fence, 'by', 'used'", "'HMGET', fence, 'none', 'used'"),
      lua("quorum/write-vote", "  and not stored[6]\n", ""),
    ],
    killers: [byServer(memory, "keeps the node from voting for another until"), byKept()],
  },
  {
    name: "unreleased-shared-holders-are-forgotten",
    brokenRule:
      "if K disappears before the end of an unreleased shared holder, the node does not vote until that end",
    edits: [
      lua(
        "common/shared-holders",
        "if is_quorum and not expiry and (used or 0) > 0 then",
        "if is_quorum and wait_ms < 0 then",
      ),
    ],
    killers: [byServer(memory, "in a shared mode exists")],
  },
  {
    name: "vote-after-an-unreleased-holder-counts-at-once",
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
    killers: [byServer(memory, "keeps its wait, whatever later grants")],
  },
  {
    name: "repeat-does-not-wait",
    brokenRule: "every vote, by reply, repeat or notification, has the rest of notBefore",
    edits: [lua("quorum/remembered-votes", "return delay_ms > 0 and delay_ms or nil", "return nil")],
    killers: [byServer(memory, "counts when its wait has ended: a mutex")],
  },
  {
    name: "notification-does-not-wait",
    brokenRule: "every vote, by reply, repeat or notification, has the rest of notBefore",
    edits: [lua("common/grant-waiter", "return delay_ms and ttl .. '+' .. delay_ms or ttl", "return ttl")],
    killers: [byServer(memory, "is notified with the ms until it")],
  },
  {
    name: "writer-does-not-wait-for-a-reader",
    brokenRule: "the remembered votes of shared holders have their end and weight",
    edits: [
      lua(
        "common/shared-holders",
        "weight < limit and 'alone' or 'notBefore'",
        "weight < limit and 'none' or 'notBefore'",
      ),
    ],
    killers: [byServer(memory, "counts when its wait has ended: a writer after a reader"), byKept()],
  },
  {
    name: "vote-waits-for-a-released-holder",
    brokenRule: "an operation that ends a token's grant also deletes its remembered vote, with or without K",
    edits: [
      lua(
        "quorum/remembered-votes",
        "return token == past_token and (",
        "return token == past_token and wait_ms < 0 and (",
      ),
    ],
    killers: [byServer(memory, "though its TTL had")],
  },
  {
    name: "grant-without-a-receiver-is-remembered",
    brokenRule: "a grant by notification without a receiver restores the former remembered vote",
    edits: [
      lua("common/grant-waiter", "  if is_quorum then\n    redis.call('HDEL', fence, 'by')\n  end\n", ""),
    ],
    killers: [byServer(memory, "is not remembered if no client received")],
  },
  {
    name: "extension-is-not-remembered",
    brokenRule: "an extension stores the new end of the holder",
    edits: [lua("quorum/lock-context", "    remember_vote(holder, ttl)\n", "")],
    killers: [byServer(memory, "lasts as long as the last")],
  },
  {
    name: "reply-to-a-request-before-the-release-counts",
    brokenRule: "a release ends every earlier vote of its node, even if the reply arrives later",
    edits: [
      redis(
        "redlock/vote-request",
        "if (requestNumber <= this.#requestsBeforeCleanUp) {",
        "if (requestNumber < 0) {",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/remembered-votes", "the release of a vote makes earlier requests"),
    ],
  },
  {
    name: "refill-keeps-a-later-number",
    brokenRule: "a refill contains the lease's number, and K stores that number",
    edits: [lua("quorum/node-operations", "if number and number <= tonumber(first) then", "if number then")],
    killers: [byServer(memory, "replaces a later number by the lease's")],
  },
  {
    name: "refill-lowers-the-counter",
    brokenRule: "after a refill the counter is the larger of both numbers",
    edits: [lua("quorum/write-vote", "(tonumber(stored[2]) or 0) + 1, floor)", "floor)")],
    killers: [byServer(memory, "restores the lease's own number, and the next")],
  },
  {
    name: "refill-after-the-end-of-the-lease",
    brokenRule: "a refill has a latest time, at most the end of the lease's validity",
    edits: [lua("quorum/node-operations", "if now_ms > tonumber(latest) or holder", "if holder")],
    killers: [byServer(memory, "does nothing if another has the")],
  },
  {
    name: "later-grant-of-the-token-is-adopted",
    brokenRule: "adoption counts a node only if K has our token with at most the lease's number",
    edits: [redis("redlock/verification", "Number(first) > fencingToken", "Number(first) < 0")],
    killers: [
      byRules("drivers/redis/redlock/remembered-votes", "an expired lease that late requests acquired"),
    ],
  },
];
