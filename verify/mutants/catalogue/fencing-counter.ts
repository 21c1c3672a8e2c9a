import { byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the counter of fencing numbers on one server, in lua/single/fencing-counter.lua. */
export const singleFencingCounter: readonly Mutant[] = [
  {
    name: "counter-is-not-written-at-the-end",
    brokenRule: "a call writes the counter at its end",
    hasCounterexample: true,
    edits: [lua("execute-single", "keep_counter()\nif is_proved then", "if is_proved then")],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "gives the grants of one call consecutive"),
    ],
  },
  {
    name: "counter-is-written-at-the-end-only",
    brokenRule:
      "OOM in the middle of a call loses no number, because the counter is written before the first grant",
    edits: [
      lua(
        "single/fencing-counter",
        "  if not newest then\n    redis.call('SET', KEYS[1], lead .. digits(last))\n    stored = last\n  end\n",
        "",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/evicted-numbers", "no lock is granted and no number")],
  },
  {
    name: "number-is-used-before-the-counter-stores-it",
    brokenRule:
      "OOM in the middle of a call loses no number, because no grant gets a number that the counter could not store",
    edits: [
      lua(
        "single/fencing-counter",
        "  if not newest then\n    redis.call('SET', KEYS[1], lead .. digits(last))\n    stored = last\n  end\n  newest = last\n",
        "  local is_first = not newest\n  newest = last\n  if is_first then\n    redis.call('SET', KEYS[1], lead .. digits(last))\n    stored = last\n  end\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/evicted-numbers", "no lock is granted and no number")],
  },
  {
    name: "first-grant-that-fails-fails-the-call",
    brokenRule: "every error after the first grant is caught",
    edits: [
      lua(
        "single/fast-acquire",
        "local ok, number, last = pcall(write_grant, token,",
        "local ok, number, last = true, write_grant(token,",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/evicted-numbers",
        "later operations are granted keeps all numbers",
      ),
    ],
  },
  {
    name: "counter-is-read-for-each-grant",
    brokenRule: "a call reads the counter once, because no key has the numbers of its own grants yet",
    edits: [
      lua("single/fencing-counter", "local last = newest or read_counter()", "local last = read_counter()"),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "gives the grants of one call consecutive"),
    ],
  },
  {
    name: "counter-expires",
    brokenRule: "the counter has no expiry, so a volatile eviction policy cannot remove it",
    edits: [
      lua(
        "single/fencing-counter",
        "    redis.call('SET', KEYS[1], lead .. digits(last))\n",
        "    redis.call('SET', KEYS[1], lead .. digits(last), 'EX', 3600)\n",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "has the last number, has no expiry"),
    ],
  },
  {
    name: "shared-grant-is-not-numbered-by-the-counter",
    brokenRule: "a server has one counter for all kinds of locks",
    edits: [lua("single/lock-context", "  return next_fence(fence_count)", "  return now, now")],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "gives the grants of one call consecutive"),
    ],
  },
  {
    name: "counter-through-tostring",
    brokenRule: "a number is never converted by tostring, which rounds after 14 digits",
    edits: [lua("single/fencing-counter", "return string.format('%.0f', number)", "return tostring(number)")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "keeps its last digit")],
  },
  {
    name: "counter-without-plus-one",
    brokenRule: "n = max(last + 1, server time in µs)",
    edits: [lua("single/fencing-counter", "math.max(last + 1, now)", "math.max(last, now)")],
    killers: [
      byServer("drivers/redis/protocol/scripts/fencing-counter", "gives the grants of one call consecutive"),
    ],
  },
  {
    name: "counter-without-time",
    brokenRule: "if the counter is lost by a flush or a failover, server time is the floor, so numbers rise",
    edits: [lua("single/fencing-counter", "math.max(last + 1, now)", "last + 1")],
    killers: [
      byRules(
        "fake-redis/fake-redis",
        "a restart without its data: the fencing tokens still rise, and the holder learns of its loss",
      ),
      byServer("drivers/redis/protocol/scripts/fencing-counter", "yields to the server's"),
    ],
  },
  {
    name: "counter-a-day-ahead-counts",
    brokenRule: "a counter more than a day ahead of the time is refused",
    edits: [
      lua(
        "single/fencing-counter",
        "if not number or number > latest and (string.byte(text) ~= 48 or number > 9e15) then",
        "if not number then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "more than a day ahead")],
  },
  {
    name: "accepted-counter-is-refused",
    brokenRule: "a counter more than a day ahead counts if an operator has accepted it",
    edits: [lua("single/fencing-counter", "(string.byte(text) ~= 48 or number > 9e15)", "number > 0")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "unless an operator has accepted")],
  },
  {
    name: "accepted-counter-is-accepted-once",
    brokenRule: "each grant keeps what an operator has accepted",
    edits: [lua("single/fencing-counter", "lead = number > latest and '0' or ''", "lead = ''")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "unless an operator has accepted")],
  },
  {
    name: "counter-an-hour-ahead-is-refused",
    brokenRule: "a counter at most a day ahead of the time counts, for example after a clock stepped back",
    edits: [lua("single/fencing-counter", "now + 86400000000", "now + 3600000000")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "counts if it is almost")],
  },
  {
    name: "counter-that-is-no-digits-counts",
    brokenRule: "a counter with other characters than digits is refused",
    edits: [lua("single/fencing-counter", "string.find(text, '^%d+$') and tonumber(text)", "tonumber(text)")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "an exponent")],
  },
  {
    name: "refusal-does-not-name-the-counter",
    brokenRule: "the error of a refused counter names its key",
    edits: [lua("single/fencing-counter", "'COUNTER ' .. KEYS[1] .. ' has '", "'COUNTER has '")],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "a fraction")],
  },
  {
    name: "lost-counter-of-a-used-server-is-refused",
    brokenRule: "if the counter is lost, server time is the floor",
    edits: [
      lua(
        "single/fencing-counter",
        "redis.pcall('GET', KEYS[1]) or '0'",
        "redis.pcall('GET', KEYS[1]) or ''",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/fencing-counter", "yields to the server's")],
  },
  {
    name: "number-is-the-time-alone",
    brokenRule: "numbers rise if a clock steps back by less than the lead of the counter",
    edits: [
      lua("single/fencing-counter", "math.max(last + 1, now)", "math.max(newest and newest + 1 or 0, now)"),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/fencing-counter",
        "while it is more than 10 ms ahead of the time",
      ),
      byServer(
        "drivers/redis/protocol/scripts/evicted-numbers",
        "by less than the counter may be ahead: numbers rise",
      ),
    ],
  },
  {
    name: "cluster-has-one-counter-for-all-slots",
    brokenRule: "a cluster has one counter for each slot in use, with a hash tag of the slot",
    edits: [
      redis(
        "protocol/keys",
        '`${reservedPrefix}fence${tag === undefined ? "" : `:{${tag}}`}`',
        '`${reservedPrefix}fence${tag === "" ? tag : ""}`',
      ),
    ],
    killers: [
      byRules("drivers/redis/protocol/keys", "a server has one counter, and each slot of a cluster its own"),
    ],
  },
];
