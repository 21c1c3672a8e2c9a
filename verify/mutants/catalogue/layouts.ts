import { byServer, edit, type Mutant } from "../mutant.ts";

const scripts = "drivers/redis/layouts/lua";
const redisson = `${scripts}/redisson/locks.lua`;
const strings = `${scripts}/strings/locks.lua`;

/** Mutants of the layouts that are shared with other libraries. */
export const layouts: readonly Mutant[] = [
  {
    name: "layout-release-without-a-message",
    brokenRule: "a release announces itself to the waiters of the other library",
    edits: [
      edit(
        redisson,
        "  redis.call('DEL', lock_key)\n  publish(channel, '0')\n  wake_fair_waiter()",
        "  redis.call('DEL', lock_key)\n  wake_fair_waiter()",
      ),
    ],
    killers: [byServer("integration/layouts/redisson", "announces its release on the channel of RLock")],
  },
  {
    name: "layout-dead-fair-waiter-is-woken",
    brokenRule: "the message to the queue of a fair lock goes to the first waiter that is not dead",
    edits: [edit(redisson, "tonumber(deadline) > now then", "tonumber(deadline) > 0 then")],
    killers: [byServer("integration/layouts/redisson", "announces its release on the channel of RLock")],
  },
  {
    name: "layout-repeat-is-another-request",
    brokenRule: "a repeat of a granted request gets that grant",
    edits: [
      edit(
        `${scripts}/common/operations.lua`,
        "  if own_ttl(token) then\n    return grant_again",
        "  if false and own_ttl(token) then\n    return grant_again",
      ),
    ],
    killers: [byServer("integration/layouts/redisson", "a request whose reply is lost gets its own grant")],
  },
  {
    name: "layout-lock-outlives-its-readers",
    brokenRule: "after the release of a reader the lock expires with the longest of the other readers",
    edits: [
      edit(
        redisson,
        "    if longest > 0 and redis.call('PTTL', lock_key) ~= -1 then",
        "    if longest < 0 then",
      ),
    ],
    killers: [byServer("integration/layouts/redisson-read-write", "has a field and a timer for each reader")],
  },
  {
    name: "layout-shared-ttl-without-a-limit",
    brokenRule: "no grant of a read-write lock is longer than the expiry that a renewal of Redisson sets",
    edits: [edit(redisson, "ttl = math.min(ttl, max_shared_ttl)", "ttl = math.max(ttl, max_shared_ttl)")],
    killers: [byServer("integration/layouts/redisson-read-write", "has a TTL of at most 30 s")],
  },
  {
    name: "layout-release-of-another-holder",
    brokenRule: "a release deletes only a value of its own token",
    edits: [
      edit(
        strings,
        "  if own_ttl(holder) then\n    before_end()",
        "  if value_of_lock() then\n    before_end()",
      ),
    ],
    killers: [byServer("integration/layouts/strings", "is extended and released by its holder only")],
  },
  {
    name: "layout-adoption-without-a-ttl-lasts-a-day",
    brokenRule:
      "the validity of an adopted grant ends with its TTL, which a key without a TTL gets by the adoption",
    edits: [edit(`${scripts}/common/operations.lua`, "if ttl == no_expiry then", "if ttl == 0 then")],
    killers: [byServer("integration/persistent-keys", "from the process that adopts the lease")],
  },
  {
    name: "layout-mutex-stays-without-a-ttl",
    brokenRule: "a renewal gives its lock a TTL",
    edits: [
      edit(
        redisson,
        "local longest = is_endless and lock_mode() == 'read' and longest_reader()",
        "local longest = is_endless and -1",
      ),
    ],
    killers: [byServer("integration/persistent-keys", "from the next renewal of its mutex")],
  },
  {
    name: "layout-waiter-needs-memory",
    brokenRule: "with full memory a waiter of the queue gets a released lock",
    edits: [
      edit(
        `${scripts}/common/operations.lua`,
        "if redis.call('ZSCORE', queue, token) then\n    remove_entry(token)\n  end\n  local fence",
        "local fence",
      ),
    ],
    killers: [byServer("integration/memory-full", "gives a released lock to the process")],
  },
  {
    name: "layout-any-shedlock-value-is-own",
    brokenRule: "a value of ShedLock's form belongs to a token only if it ends with the token",
    edits: [
      edit(
        `${scripts}/shedlock.lua`,
        " and string.sub(value, -37) == ':' .. to_uuid(holder)",
        " and holder ~= ''",
      ),
    ],
    killers: [byServer("integration/layouts/strings", "is extended and released by its holder only")],
  },
];
