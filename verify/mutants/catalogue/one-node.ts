import { byServer, bySim, lua, type Mutant } from "../mutant.ts";

/** What one node does for who holds a lock: sections 1 and 2. */
export const oneNode: readonly Mutant[] = [
  {
    name: "raising-a-ttl-shortens-it",
    breaks: "K is ours: raise the TTL to at least ttl, never shorten it (2, acquire)",
    isMarked: true,
    edits: [lua("_queue", "if left >= 0 and left < tonumber(ttl) then", "if left >= 0 then")],
    killers: [byServer("drivers/redis/scripts/acquire", "a repeat with a shorter TTL never shortens it")],
  },
  {
    name: "release-without-comparing",
    breaks: "release: K is not ours: answer not-held (2)",
    edits: [
      lua("operate", "elseif holder == token then", "elseif holder then"),
      lua(
        "_release",
        "local function release(token, terms)\n  if holder == token then",
        "local function release(token, terms)\n  if holder then",
      ),
    ],
    killers: [
      bySim(1, 60),
      byServer(
        "drivers/redis/scripts/release",
        "a lock of another is left alone: the whole token is compared",
      ),
    ],
  },
  {
    name: "release-compares-the-attempt-only",
    breaks: "every operation but acquire compares the whole token (1)",
    edits: [
      lua(
        "operate",
        "elseif holder == token then",
        "elseif holder and string.sub(holder, 1, 33) == string.sub(token, 1, 33) then",
      ),
      lua(
        "_release",
        "local function release(token, terms)\n  if holder == token then",
        "local function release(token, terms)\n  if holder and string.sub(holder, 1, 33) == string.sub(token, 1, 33) then",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/scripts/release",
        "a lock of another is left alone: the whole token is compared",
      ),
    ],
  },
  {
    name: "acquire-compares-the-random-part-only",
    breaks: "a grant is ours if its whole token is: a token has one owner, for ever (core-2 3.1)",
    isMarked: true,
    edits: [
      lua(
        "_acquire",
        "  elseif holder == token then\n    return granted_again(",
        "  elseif string.sub(holder, 1, 33) == string.sub(token, 1, 33) then\n    return granted_again(",
      ),
      lua(
        "_line-up",
        "if holder ~= token then",
        "if string.sub(holder, 1, 33) ~= string.sub(token, 1, 33) then",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/scripts/acquire",
        "the same random part does not make another client's token, or another ticket's, ours",
      ),
      byServer("drivers/redis/clones", "never hold a lock at once: one server"),
    ],
  },
  {
    name: "pass-on-without-comparing",
    breaks: "passOn: K is old: queue new, then grant to the next; else queue new (2)",
    edits: [lua("_acquire", "local released = holder == old", "local released = holder and true or false")],
    killers: [byServer("drivers/redis/scripts/pass-on", "a lock that was lost to another is not given up")],
  },
  {
    name: "extend-re-creates",
    breaks: "extend: ours: raise the TTL; else not-held. Never re-creates (2)",
    edits: [
      lua(
        "_extend",
        "  if holder ~= token then\n    local reason",
        "  if not holder then\n    put(token, ttl, 1)\n  elseif holder ~= token then\n    local reason",
      ),
    ],
    killers: [byServer("drivers/redis/scripts/extend", "never creates again what is gone")],
  },
  {
    name: "extend-revives-an-expired-lease",
    breaks: "extend: a later grant of the same token is not extended",
    edits: [
      lua(
        "_extend",
        "  elseif number ~= '' and (numbers() or 0) > tonumber(number) then\n    return 0\n",
        "",
      ),
    ],
    killers: [byServer("drivers/redis/scripts/extend", "does not touch a later grant of the token")],
  },
  {
    name: "extension-forgets-what-was-said",
    breaks: "what an owner said of itself lasts as long as K",
    edits: [lua("_queue", "    redis.call('PEXPIRE', info, ttl)\n", "")],
    killers: [byServer("drivers/redis/scripts/extend", "an extension without words keeps")],
  },
  {
    name: "extend-without-comparing",
    breaks: "extend: ours: raise the TTL; else not-held (2)",
    edits: [
      lua("_extend", "  if holder ~= token then\n    local reason", "  if not holder then\n    local reason"),
    ],
    killers: [byServer("drivers/redis/scripts/extend", "does not touch another's lock")],
  },
  {
    name: "operator-breaks-a-later-grant",
    breaks: "break: if the number lies in the current grant's block (2)",
    edits: [
      lua(
        "_release",
        "if not client or not first or number < first or number > last then",
        "if not client or not first or number > last then",
      ),
    ],
    killers: [
      byServer("drivers/redis/scripts/break", "an old grant's number breaks nothing of the present one"),
    ],
  },
  {
    name: "broken-holder-is-not-told",
    breaks: "break: publish to the holder (2)",
    edits: [
      lua("_release", "  publish(kind, client, 'broken ' .. cjson.encode({ holder, K, reason }))\n", ""),
    ],
    killers: [
      byServer(
        "drivers/redis/scripts/break",
        "the grant that a number belongs to is ended, and its holder told why",
      ),
    ],
  },
  {
    name: "an-error-stops-the-whole-batch",
    breaks: "each operation isolated (pcall), so that one key's error is not another's (7)",
    edits: [
      lua("_unusual", "local ok, answer = pcall(perform, name,", "local ok, answer = true, perform(name,"),
    ],
    killers: [byServer("drivers/redis/scripts/acquire", "one key's error is not another's")],
  },
];
