import { byRules, byServer, bySim, edit, lua, type Mutant } from "../mutant.ts";

/** The numbers that one node or one process gives: sections 1, 5 and 6. */
export const counter: readonly Mutant[] = [
  {
    name: "extension-leaves-the-counter-to-expire",
    breaks: "fenceRetentionMs beyond K's TTL, set again by grant and extension (1)",
    isMarked: true,
    edits: [lua("_queue", "  redis.call('PEXPIRE', fence, lasts + retention_ms)\n", "")],
    killers: [byServer("drivers/redis/scripts/extend", "prolongs the counter")],
  },
  {
    name: "grant-leaves-the-counter-to-expire",
    breaks: "fenceRetentionMs beyond K's TTL, set again by grant and extension (1)",
    isMarked: true,
    edits: [
      lua(
        "_put",
        "  and call('PEXPIRE', fence, outlives) == 1\n",
        "  and (newest or call('PEXPIRE', fence, outlives) == 1)\n",
      ),
    ],
    killers: [byServer("drivers/redis/scripts/grant", "each grant sets the counter's expiry anew")],
  },
  {
    name: "counter-through-tostring",
    breaks: "never tostring a number: it rounds at 14 digits (5)",
    edits: [
      lua("_state", "return string.format(whole, number)", "return tostring(number)"),
      lua("_put", "string.format(whole, number)", "tostring(number)"),
      lua("_put", "string.format(whole, last)", "tostring(last)"),
    ],
    killers: [byServer("drivers/redis/scripts/acquire", "numbers are kept to their last digit")],
  },
  {
    name: "counter-without-plus-one",
    breaks: "n = max(last + 1, server time in µs) (5)",
    edits: [
      lua("_put", "math.max((tonumber(newest) or 0) + 1, floor)", "math.max((tonumber(newest) or 0), floor)"),
    ],
    killers: [
      byServer("drivers/redis/scripts/candidates", "one that is not above the last number does not count"),
    ],
  },
  {
    name: "counter-without-time",
    breaks:
      "time as the floor keeps numbers rising after the counter expired, after a flush, and after a failover (5)",
    edits: [lua("_put", "math.max((tonumber(newest) or 0) + 1, floor)", "(tonumber(newest) or 0) + 1")],
    killers: [
      byRules("drivers/redis/fake-redis", "a restart without its data: the numbers rise all the same"),
      byServer("drivers/redis/scripts/acquire", "numbers rise over the loss of everything"),
    ],
  },
  {
    name: "next-grant-begins-inside-the-block",
    breaks: "a block of k numbers is written as a whole: last = first + k − 1 (5)",
    edits: [lua("_put", "local last = number + want - 1", "local last = number")],
    killers: [byServer("drivers/redis/scripts/acquire", "a block of numbers is granted as a whole")],
  },
  {
    name: "candidate-is-not-clamped",
    breaks: "the node clamps the candidate to its own time ± 1 s (5)",
    edits: [
      lua(
        "operate",
        "math.max(now - 1000000, math.min(now + 1000000, tonumber(operations[first])))",
        "tonumber(operations[first])",
      ),
    ],
    killers: [
      byServer("drivers/redis/scripts/candidates", "one that is further off counts as a second ahead"),
    ],
  },
  {
    name: "number-of-the-run-is-used-twice",
    breaks: "a number is never used for two leases (6)",
    isMarked: true,
    edits: [
      edit("acquire.ts", "this.#options, from.fencingToken + 1n);", "this.#options, from.fencingToken);"),
    ],
    killers: [bySim(1, 60), byRules("hold-runs", "what is handed over has the next number")],
  },
  {
    name: "run-goes-on-beyond-its-numbers",
    breaks: "handed over each with its own number from the grant's block (6)",
    isMarked: true,
    edits: [edit("acquire.ts", "used < hold.grant.fencingCount && ", "used > 0 && ")],
    killers: [byRules("hold-runs", "however long a run is, its numbers are smaller than the next one's")],
  },
];
