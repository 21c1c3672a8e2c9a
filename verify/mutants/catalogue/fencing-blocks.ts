import { byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the block of fencing tokens that one grant gets from the counter of a server. */
export const fencingBlocks: readonly Mutant[] = [
  {
    name: "next-grant-begins-inside-the-block",
    brokenRule: "a block of k fencing tokens belongs to one grant",
    edits: [lua("single/fencing-counter", "  newest = last\n", "  newest = first\n")],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "gives the grants of one call consecutive"),
    ],
  },
  {
    name: "block-however-far-ahead",
    brokenRule: "while the counter is more than 10 ms ahead of the time, a grant gets one number",
    hasCounterexample: true,
    edits: [
      lua(
        "single/fencing-counter",
        "first > now + 10000 and first or first + fence_count - 1",
        "first + fence_count - 1",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/fencing-counter",
        "while it is more than 10 ms ahead of the time",
      ),
    ],
  },
  {
    name: "no-block-after-a-block",
    brokenRule: "grants get blocks until the counter is 10 ms ahead of the time",
    edits: [lua("single/fencing-counter", "first > now + 10000 and first", "first > now and first")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "so cannot run further ahead")],
  },
  {
    name: "reply-derives-the-last-number",
    brokenRule: "clients never derive the last number from the requested count",
    hasCounterexample: true,
    edits: [
      lua(
        "single/fast-acquire",
        "number == last and number or { 1, number, last, token }",
        "{ 1, number, number + operations[first + 3] - 1, token }",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/fencing-counter",
        "while it is more than 10 ms ahead of the time",
      ),
    ],
  },
  {
    name: "client-derives-the-last-number",
    brokenRule: "clients never derive the last number from the requested count",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request",
        "fencingCount: Number(last) - Number(first) + 1,",
        "fencingCount: Math.max(this.#request.fencingCount, Number(last) - Number(first) + 1),",
      ),
    ],
    killers: [byRules("drivers/redis/single/handed-over", "while the server's")],
  },
  {
    name: "repeat-derives-the-last-number",
    brokenRule: "a reply has the first number and the count that K stores",
    edits: [
      lua(
        "single/mutex",
        "    return repeat_grant(token, queue_entry, ttl, metadata)\n",
        "    own_last = own_first + fence_count - 1\n    return repeat_grant(token, queue_entry, ttl, metadata)\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "a repeat that requests more or fewer")],
  },
  {
    name: "count-in-the-lock-is-the-requested-one",
    brokenRule: "K stores how many numbers the grant got",
    edits: [
      lua(
        "execute-single",
        "table.concat({ token, digits(first), last - first + 1 }, ' ')",
        "table.concat({ token, digits(first), fence_count }, ' ')",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/fencing-counter",
        "while it is more than 10 ms ahead of the time",
      ),
    ],
  },
  {
    name: "count-in-the-lock-is-read-wrong",
    brokenRule: "K stores how many numbers the grant got",
    edits: [
      lua("single/lock-context", "own_first and own_first + count - 1", "own_first and own_first + count"),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/break", "every number of the block belongs to the grant"),
    ],
  },
  {
    name: "mark-changes-the-count",
    brokenRule: "K stores how many numbers the grant got, also after K is written again",
    edits: [lua("single/lock-context", "own_last - own_first + 1, 'i'", "own_last - own_first, 'i'")],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "adds metadata to a grant without any")],
  },
];
