import { byRules, byServer, edit, lua, redis, type Mutant } from "../mutant.ts";

/** Latches: lua/common/latch.lua says what they are. */
export const latch: readonly Mutant[] = [
  {
    name: "latch-counts-an-attempt-twice",
    brokenRule: "counted down to zero, once by each attempt",
    edits: [
      lua(
        "common/latch",
        "  if left > 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then",
        "  if left > 1 then",
      ),
    ],
    killers: [
      byRules("fake-redis/fake-redis", "latch: an attempt counts once"),
      byServer("drivers/redis/protocol/scripts/latch", "an attempt counts once"),
    ],
  },
  {
    name: "latch-resent-count-is-another-attempt",
    brokenRule: "repeats are one attempt with one token: what was carried out and not answered counts once",
    edits: [
      redis(
        "single/latches",
        "const args = [this.#token, String(count)",
        "const args = [this.#latches.host.tokenOf(this.latch.key, undefined), String(count)",
      ),
    ],
    killers: [byRules("kinds/latch", "a count whose reply was lost counts once, however often it is sent")],
  },
  {
    name: "latch-tells-nobody",
    brokenRule: "tells who waits that it is open",
    edits: [
      lua(
        "common/latch",
        "      publish(kind, client, 'latch-open ' .. created_at .. ' ' .. lock_key)\n",
        "",
      ),
    ],
    killers: [
      byRules("kinds/latch", "a notification ends a wait"),
      byServer("drivers/redis/protocol/scripts/latch", "told once for each process"),
    ],
  },
  {
    name: "latch-wait-without-its-poll",
    brokenRule: "who waits asks again whatever message is lost",
    edits: [
      redis(
        "single/latches",
        "      this.retryIn(queuedPollDelay(random, 0, remainingMs, Infinity));",
        "      void queuedPollDelay(random, 0, remainingMs, Infinity);",
      ),
    ],
    killers: [byRules("kinds/latch", "a lost notification delays a wait by at most 5 s")],
  },
  {
    name: "latch-deaf-waiter-does-not-ask",
    brokenRule: "on every (re)subscription waiting requests ask again (3)",
    edits: [redis("single/request-registry", "    this.latches.notificationStatusChanged(server);\n", "")],
    killers: [byRules("kinds/latch", "a waiter polls as soon as its lost subscription is back")],
  },
  {
    name: "latch-overtaken-by-its-message",
    brokenRule: "a message that overtakes the answer to the question is not missed",
    edits: [
      redis("single/latches", "      this.trySend(); // the notification arrived before the reply\n", ""),
    ],
    killers: [
      byRules("kinds/latch", "a notification that overtakes the reply to the first request is not missed"),
    ],
  },
  {
    name: "latch-opened-by-an-older-one",
    brokenRule: "its birth tells one latch of a key from the next",
    edits: [
      redis(
        "single/latches",
        "if (this.#waits && this.latch.generation === id) {",
        'if (this.#waits && id !== "") {',
      ),
    ],
    killers: [
      byRules("kinds/latch", "a notification of an earlier latch does not open a later latch of the key"),
    ],
  },
  {
    name: "latch-open-one-is-forgotten",
    brokenRule: "open from then on until their TTL is over",
    edits: [
      lua(
        "common/latch",
        "    redis.call('UNLINK', lock_key)\n    write()\n",
        "    redis.call('UNLINK', lock_key)\n",
      ),
    ],
    killers: [
      byRules("fake-redis/fake-redis", "latch: an open latch stays open"),
      byServer("drivers/redis/protocol/scripts/latch", "a repeat of who opened it"),
    ],
  },
  {
    name: "latch-begins-anew-for-who-knew-it",
    brokenRule: "a view that has met a latch touches no other",
    edits: [lua("common/latch", "  elseif known ~= '' then\n    return false\n  end\n", "  end\n")],
    killers: [
      byRules("kinds/latch", "a latch that the server lost early has expired for clients that know it"),
      byServer("drivers/redis/protocol/scripts/latch", "who was born before is over"),
    ],
  },
  {
    name: "latch-counts-what-comes-too-late",
    brokenRule: "who sent it has given up then, and the next latch of the key may be there",
    edits: [
      lua(
        "common/latch",
        "function latch.countDown(token, count, ttl, known, latest)\n  if now_ms > tonumber(latest) then",
        "function latch.countDown(token, count, ttl, known, latest)\n  if tonumber(latest) < 0 then",
      ),
    ],
    killers: [
      byRules(
        "kinds/latch",
        "a count that reaches the server after its caller's timeout does not count in the next latch of the key",
      ),
      byServer("drivers/redis/protocol/scripts/latch", "what comes too late touches nothing"),
    ],
  },
  {
    name: "latch-written-in-two-steps",
    brokenRule: "a count is refused as a whole where memory is full: nobody is told of what is not written",
    edits: [
      lua(
        "common/latch",
        "    redis.call('HSET', lock_key, attempt, 1, 'left', left)\n",
        "    redis.pcall('HSET', lock_key, attempt, 1, 'left', left)\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/latch", "where memory is full")],
  },
  {
    name: "latch-dead-waiters-are-counted",
    brokenRule: "a sorted set of who waits, by the time until which it is expected to ask again",
    edits: [
      lua(
        "common/latch",
        "grant_numbers()\n  redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)\n",
        "grant_numbers()\n",
      ),
    ],
    killers: [
      byRules("kinds/latch", "a waiter is counted while it polls: a dead process is dropped after 15 s"),
      byServer("drivers/redis/protocol/scripts/latch", "who has not asked for long is gone"),
    ],
  },
  {
    name: "latch-of-memory-counts-an-attempt-twice",
    brokenRule: "counted down to zero, once by each attempt",
    edits: [
      edit(
        "drivers/memory/latch.ts",
        "(attemptId !== undefined && this.#attempts.has(attemptId))",
        '(attemptId === "" && this.#attempts.has(attemptId))',
      ),
    ],
    killers: [byRules("drivers/memory/driver", "latch: an attempt counts once")],
  },
  {
    name: "latch-of-memory-lets-a-mutex-in",
    brokenRule: "a key of another kind is kind-mismatch and is not touched (11)",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "    if (latch) {\n      return kindMismatch(key, latch.kind);\n    }\n",
        "    void latch;\n",
      ),
    ],
    killers: [byRules("drivers/memory/driver", "latch: a key is one kind at a time")],
  },
];
