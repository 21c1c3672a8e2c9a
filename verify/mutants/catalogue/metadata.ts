import { byServer, lua, type Mutant } from "../mutant.ts";

/** Mutants of the metadata that a server stores for a holder. */
export const holderMetadata: readonly Mutant[] = [
  {
    name: "extension-does-not-extend-the-metadata",
    brokenRule: "the metadata of a holder lasts as long as K",
    edits: [lua("single/lock-context", "    redis.call('PEXPIRE', info, digits(ttl_ms))\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "without metadata keeps the")],
  },
  {
    name: "shorter-extension-shortens-the-metadata",
    brokenRule: "the metadata of a holder lasts as long as its grant",
    edits: [
      lua(
        "single/mutex",
        "    write_info(token, ttl_ms, metadata)\n  end\n  return 1\n",
        "    write_info(token, ttl, metadata)\n  end\n  return 1\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "with a shorter TTL keeps")],
  },
  {
    name: "metadata-of-a-grant-sets-no-mark",
    brokenRule: "K has a mark if metadata was written, and a release deletes the metadata only then",
    edits: [lua("execute-single", "mark and value .. ' i' or value", "mark and value or value")],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the holder releases the lock with")],
  },
  {
    name: "metadata-of-an-extension-sets-no-mark",
    brokenRule: "K has a mark if metadata was written, also after the grant",
    edits: [lua("single/mutex", "  if metadata ~= '' then\n    mark(token)\n", "  if metadata ~= '' then\n")],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "adds metadata to a grant without any")],
  },
  {
    name: "metadata-of-a-repeat-sets-no-mark",
    brokenRule: "K has a mark if metadata was written, also after a grant by notification",
    edits: [lua("single/mutex", "~= token then\n    mark(token)\n", "~= token then\n")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/acquire",
        "a repeat that finds a grant by notification writes",
      ),
    ],
  },
  {
    name: "mark-removes-the-expiry-of-the-lock",
    brokenRule: "K has an expiry, and the mark does not remove it",
    edits: [lua("single/lock-context", "'i' }, ' '), 'KEEPTTL')", "'i' }, ' '))")],
    killers: [byServer("drivers/redis/protocol/scripts/extend", "adds metadata to a grant without any")],
  },
  {
    name: "metadata-remains-after-a-fast-release",
    brokenRule: "a released key leaves no data",
    edits: [
      lua(
        "single/fast-release",
        "is_marked and call('DEL', lock_key, info) or call('DEL', lock_key)",
        "call('DEL', lock_key)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the holder releases the lock with")],
  },
  {
    name: "metadata-remains-after-a-hand-over",
    brokenRule: "a released key leaves no data",
    edits: [lua("single/mutex", "    if is_marked then\n      redis.call('DEL', info)\n    end\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the reply is its grant, with the TTL")],
  },
  {
    name: "granted-without-its-metadata",
    brokenRule: "metadata is written before K, so a failed write grants nothing",
    edits: [
      lua(
        "single/mutex",
        "  write_info(token, ttl, metadata)\n  local first, last = write_grant(token, ttl, fence_count, metadata ~= '')\n",
        "  local first, last = write_grant(token, ttl, fence_count, metadata ~= '')\n  write_info(token, ttl, metadata)\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "gets an error and no grant, if")],
  },
  {
    name: "break-stores-no-note",
    brokenRule: "a break stores a note beside the key for a holder that misses the notification",
    edits: [
      lua(
        "single/mutex",
        "  write_info(holder, math.max(remaining_ms, 1000), cjson.encode({ 'broken', reason }))\n",
        "",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/break", "a holder that missed the notification")],
  },
  {
    name: "metadata-of-another-grant-is-reported",
    brokenRule: "metadata counts only for the token with which it was written",
    edits: [
      lua(
        "single/mutex",
        "if not holder or redis.call('HGET', info, 'token') ~= holder then",
        "if not holder then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/inspect", "metadata of another grant")],
  },
  {
    name: "fast-acquire-drops-the-metadata",
    brokenRule: "a grant with metadata uses the general path, which writes the metadata",
    edits: [lua("single/fast-acquire", "operations[first + 5] == '' and ", "")],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "an owner's metadata is stored")],
  },
];
