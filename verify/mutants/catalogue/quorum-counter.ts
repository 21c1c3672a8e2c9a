import { byRules, byServer, bySim, edit, lua, type Mutant } from "../mutant.ts";

/** Mutants of the numbers that a node of a quorum or one process gives. For one server see fencing-counter.ts. */
export const counter: readonly Mutant[] = [
  {
    name: "extension-leaves-the-counter-to-expire",
    brokenRule: "the counter lasts fenceRetentionMs beyond the TTL of K, renewed by each grant and extension",
    hasCounterexample: true,
    edits: [lua("quorum/lock-context", "  redis.call('PEXPIRE', fence, ttl_ms + retention_ms)\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/quorum-counter", "is extended by a repeat and by an")],
  },
  {
    name: "grant-leaves-the-counter-to-expire",
    brokenRule: "the counter lasts fenceRetentionMs beyond the TTL of K, renewed by each grant and extension",
    hasCounterexample: true,
    edits: [
      lua(
        "quorum/write-vote",
        "  and call('PEXPIRE', fence, fence_ttl_text) == 1\n",
        "  and (call('PTTL', fence) > 0 or call('PEXPIRE', fence, fence_ttl_text) == 1)\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/quorum-counter", "gets a new expiry")],
  },
  {
    name: "number-of-a-vote-through-tostring",
    brokenRule: "a number is never converted by tostring, which rounds after 14 digits",
    edits: [lua("quorum/call-context", "return string.format(whole, number)", "return tostring(number)")],
    killers: [byServer("drivers/redis/protocol/scripts/quorum-counter", "is written in a notification")],
  },
  {
    name: "counter-of-a-node-without-plus-one",
    brokenRule: "n = max(last + 1, server time in µs)",
    edits: [
      lua(
        "quorum/write-vote",
        "math.max((tonumber(stored[1]) or 0) + 1, ",
        "math.max((tonumber(stored[1]) or 0), ",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/candidates", "a proposal that is not above the last")],
  },
  {
    name: "counter-of-a-node-without-candidate",
    brokenRule: "all nodes give the client's candidate if their counter and their time allow it",
    edits: [
      lua("quorum/write-vote", "(tonumber(stored[2]) or 0) + 1, floor)", "(tonumber(stored[2]) or 0) + 1)"),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/candidates", "a proposal near the server's time")],
  },
  {
    name: "next-vote-begins-inside-the-block",
    brokenRule: "a block of k numbers is written as a whole: last = first + k − 1",
    edits: [lua("quorum/write-vote", "local last = number + fence_count - 1", "local last = number")],
    killers: [byServer("drivers/redis/protocol/scripts/quorum-counter", "begins a block after the")],
  },
  {
    name: "candidate-is-not-clamped",
    brokenRule: "the node clamps the candidate to its own time ± 1 s",
    edits: [
      lua(
        "execute-quorum",
        "math.max(now - 1000000, math.min(now + 1000000, tonumber(operations[at + 1])))",
        "tonumber(operations[at + 1])",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/candidates", "a proposal that is further off counts")],
  },
  {
    name: "number-of-a-block-is-used-twice",
    brokenRule: "a number is never used for two leases",
    hasCounterexample: true,
    edits: [
      edit(
        "local/acquisition.ts",
        "this.#options, previous.fencingToken + 1n);",
        "this.#options, previous.fencingToken);",
      ),
    ],
    killers: [bySim(1, 60), byRules("lease/lease-numbers", "a handed-over lease has the next fencing token")],
  },
  {
    name: "hand-overs-exceed-the-numbers-of-the-block",
    brokenRule: "each handed-over lease has its own number from the grant's block",
    hasCounterexample: true,
    edits: [edit("local/acquisition.ts", "used < leaseState.grant.fencingCount &&\n      ", "used > 0 && ")],
    killers: [
      byRules(
        "lease/lease-numbers",
        "the fencing tokens of a run of any length are smaller than those of the next run",
      ),
    ],
  },
];
