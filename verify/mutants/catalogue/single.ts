import { byRules, byServer, bySim, lua, type Mutant } from "../mutant.ts";

/** Mutants of one server's operations for the holder of a mutex, in lua/single/mutex.lua and lua/single/lock-context.lua. */
export const singleServer: readonly Mutant[] = [
  {
    name: "raising-a-ttl-shortens-it",
    brokenRule:
      "extension sets the TTL to the larger of the present and the requested one, and never shortens it",
    hasCounterexample: true,
    edits: [lua("single/lock-context", "math.max(redis.call('PTTL', lock_key), ttl)", "math.max(0, ttl)")],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "a repeat with a shorter TTL never")],
  },
  {
    name: "extension-leaves-a-lock-persistent",
    brokenRule: "extension gives the TTL to a key without expiry",
    edits: [
      lua(
        "single/lock-context",
        "  redis.call('PEXPIRE', lock_key, digits(ttl_ms))\n",
        "  if redis.call('PTTL', lock_key) >= 0 then\n    redis.call('PEXPIRE', lock_key, digits(ttl_ms))\n  end\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "gives its TTL to a lock that was made")],
  },
  {
    name: "extension-writes-metadata-first",
    brokenRule: "extension writes the TTL first, because full memory refuses metadata and permits PEXPIRE",
    edits: [
      lua(
        "single/mutex",
        "  local ttl_ms = raise_ttl(ttl)\n  if metadata ~= '' then\n    mark(token)\n",
        "  local ttl_ms = ttl\n  if metadata ~= '' then\n    mark(token)\n    raise_ttl(ttl)\n",
      ),
      lua("single/mutex", "  end\n  return 1\nend\n", "  end\n  raise_ttl(ttl)\n  return 1\nend\n"),
    ],
    killers: [
      bySim(1, 60, "full-memory"),
      byServer("drivers/redis/protocol/scripts/extend", "whose memory is full"),
    ],
  },
  {
    name: "release-without-comparing",
    brokenRule: "a release with another token is answered with not-held",
    edits: [
      lua("single/fast-release", "string.sub(value, 1, #token + 1) == token .. ' ' then", "value ~= '' then"),
      lua("single/mutex", "or nil\n  if holder == token then", "or nil\n  if holder then"),
    ],
    killers: [
      bySim(1, 60),
      byServer("drivers/redis/protocol/scripts/release", "a lock of another client is left alone: the"),
    ],
  },
  {
    name: "release-compares-the-attempt-only",
    brokenRule: "every operation except acquire compares the whole token",
    edits: [
      lua(
        "single/fast-release",
        "string.sub(value, 1, #token + 1) == token .. ' ' then",
        "string.sub(value, 1, 33) == string.sub(token, 1, 33) then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "a lock of another client is left alone: the"),
    ],
  },
  {
    name: "release-compares-without-the-blank",
    brokenRule: "K is ours only if it has our token and the blank after it",
    hasCounterexample: true,
    edits: [
      lua(
        "single/fast-release",
        "string.sub(value, 1, #token + 1) == token .. ' ' then",
        "string.sub(value, 1, #token) == token then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "a token that is a prefix or an extension")],
  },
  {
    name: "value-of-the-token-alone-is-ours",
    brokenRule: "K is ours only if it has our token and the blank after it",
    edits: [lua("single/lock-context", "    token = value .. ' '\n", "    token = value\n")],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "does not accept a lock key with the token")],
  },
  {
    name: "acquire-compares-the-random-part-only",
    brokenRule:
      "a grant belongs to a request only if the whole token matches, because a token has one owner forever",
    hasCounterexample: true,
    edits: [
      lua(
        "single/mutex",
        "  elseif holder == token then\n    return repeat_grant(",
        "  elseif string.sub(holder, 1, 33) == string.sub(token, 1, 33) then\n    return repeat_grant(",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/acquire",
        "a token with the same random part but another client or ticket",
      ),
      byServer("drivers/redis/single/clones", "never hold a lock at once: one server"),
    ],
  },
  {
    name: "lock-of-another-program-is-free",
    brokenRule: "a Redlock client of another language only needs K to be a string of another holder",
    edits: [
      lua(
        "single/lock-context",
        "if not token and (value ~= '' or redis.call('EXISTS', lock_key) == 1) then",
        "if false then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "a lock of another client library")],
  },
  {
    name: "grant-has-no-expiry",
    brokenRule: "K has an expiry, set by PX",
    edits: [
      lua(
        "execute-single",
        "redis.call('SET', lock_key, mark and value .. ' i' or value, 'PX', ttl)",
        "redis.call('SET', lock_key, mark and value .. ' i' or value)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "a free lock is granted: its key")],
  },
  {
    name: "extend-re-creates",
    brokenRule: "extend raises the TTL of our grant, or replies not-held, and never creates a grant",
    edits: [
      lua(
        "single/mutex",
        "  if holder ~= token then\n    local reason",
        "  if not holder then\n    write_grant(token, ttl, 1)\n  elseif holder ~= token then\n    local reason",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "never recreates an expired")],
  },
  {
    name: "extend-revives-an-expired-lease",
    brokenRule: "extend does not affect a later grant of the same token",
    edits: [
      lua("single/mutex", "  elseif number ~= '' and own_first > tonumber(number) then\n    return 0\n", ""),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "does not touch a later grant of the token")],
  },
  {
    name: "extend-without-comparing",
    brokenRule: "extend raises the TTL of our grant, or replies not-held",
    edits: [
      lua(
        "single/mutex",
        "  if holder ~= token then\n    local reason",
        "  if not holder then\n    local reason",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "does not touch another's lock")],
  },
  {
    name: "operator-breaks-a-later-grant",
    brokenRule: "break ends a grant only if the number is in the block of the current grant",
    edits: [
      lua(
        "single/mutex",
        "not own_first or number < own_first or number > own_last then",
        "not own_first or number > own_last then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/break", "the number of an old grant does not break")],
  },
  {
    name: "broken-holder-is-not-notified",
    brokenRule: "break notifies the holder",
    edits: [
      lua(
        "single/mutex",
        "  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))\n",
        "",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/break", "the grant with this number is ended, and its holder"),
    ],
  },
  {
    name: "free-lock-has-fencing-numbers",
    brokenRule: "inspect and checkFence read K, and a free key has no number",
    edits: [
      lua(
        "single/lock-context",
        "  own_first, is_marked = tonumber(first), mark == ' i'",
        "  own_first, is_marked = tonumber(first) or own_first, mark == ' i'",
      ),
      lua(
        "single/lock-context",
        "own_first and own_first + count - 1",
        "own_first and own_first + (count or 1) - 1",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/inspect", "each operation of a call reports its"),
      byRules("fake-redis/fake-redis", "fencing"),
    ],
  },
  {
    name: "an-error-stops-the-whole-batch",
    brokenRule: "pcall isolates each operation, so an error of one key does not affect another key",
    edits: [
      lua(
        "common/dispatch",
        "local ok, answer = pcall(perform, ...)",
        "local ok, answer = true, perform(...)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "an error of one key does")],
  },
  {
    name: "break-without-its-record",
    brokenRule: "a break that cannot be recorded changes nothing",
    edits: [
      lua(
        "common/recorded-break",
        "redis.call('ZADD', audit, id, record)",
        "redis.pcall('ZADD', audit, id, record)",
      ),
      lua("common/recorded-break", "redis.call('ZRANGE'", "redis.pcall('ZRANGE'"),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/recorded-break", "without the right to write")],
  },
];
