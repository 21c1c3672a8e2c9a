import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** The usual calls to one server, what a release tells, and what comes too late: lua/execute-single.lua (core-2, 2 and 3.2). */
export const calls: readonly Mutant[] = [
  {
    name: "lone-operation-is-read-as-one-of-several",
    brokenRule: "a lone operation does not pay for a batch: its arguments are the script's (core-2, 2)",
    edits: [lua("execute-single", "local is_single = #KEYS == 4", "local is_single = #KEYS == 1")],
    killers: [byServer("drivers/redis/protocol/scripts/commands", "an acquire of a free lock")],
  },
  {
    name: "several-operations-are-read-as-a-lone-one",
    brokenRule: "a lone operation does not pay for a batch; several are told as JSON (core-2, 2)",
    edits: [lua("execute-single", "local is_single = #KEYS == 4", "local is_single = #KEYS >= 4")],
    killers: [byServer("drivers/redis/protocol/scripts/commands", "several operations in one call")],
  },
  {
    name: "lone-operation-travels-as-several",
    brokenRule: "a lone operation does not pay for a batch: no JSON (core-2, 2)",
    edits: [
      redis(
        "server/batch",
        "operations.length === 1 && !this.#withRunId",
        "operations.length === 0 && !this.#withRunId",
      ),
    ],
    killers: [
      byRules("drivers/redis/server/batch", "an operation alone travels with its arguments as they are"),
    ],
  },
  {
    name: "operations-sent-again-have-their-former-arguments",
    brokenRule: "a repeat names a new latest time, and a place as soon as messages are heard (core-2 3.2)",
    edits: [
      redis("protocol/operation", "args !== latest.args[i])) {", "args[1] !== latest.args[i]?.[1])) {"),
    ],
    killers: [byKept(), byRules("drivers/redis/server/batch", "operations that are sent again together")],
  },
  {
    name: "one-batch-in-flight",
    brokenRule:
      "two batches in flight: half-size batches, two under way, let client and server both work (core-2, 2)",
    edits: [redis("server/batch", "const callsInFlight = 2;", "const callsInFlight: number = 1;")],
    killers: [byRules("drivers/redis/server/batch", "more of them share two calls, evenly")],
  },
  {
    name: "counter-is-read-where-nothing-is-granted",
    brokenRule: "TIME, GET and SET of the counter only where a call grants (core-2, 2)",
    edits: [
      lua(
        "execute-single",
        "keep_counter()\nif is_proved then",
        "read_counter()\nkeep_counter()\nif is_proved then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/commands", "what grants nothing: the counter is neither read"),
    ],
  },
  {
    name: "waiter-found-in-the-usual-release-is-dropped",
    brokenRule: "a waiter that is popped is granted, or put back by whatever fails",
    hasCounterexample: true,
    edits: [lua("single/fast-release", "    popped = waiter\n", "    popped = nil\n")],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "a waiter of another kind stays where it is"),
    ],
  },
  {
    name: "waiter-that-was-popped-is-lost-by-an-error",
    brokenRule: "a waiter that is popped is granted, or put back by whatever fails",
    hasCounterexample: true,
    edits: [
      lua(
        "common/dispatch",
        "  if popped and popped[1] then\n    put_back(popped)",
        "  if not popped and popped[1] then\n    put_back(popped)",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/release",
        "who may not del while somebody waits eats no place",
      ),
    ],
  },
  {
    name: "waiter-is-looked-for-behind-the-deletion",
    brokenRule:
      "release: GET K, ZPOPMIN queue, DEL K (core-2, 2): a queue that cannot be read leaves the lock as it is",
    edits: [lua("single/fast-release", "  elseif not waiter.err then", "  else")],
    killers: [byServer("drivers/redis/protocol/scripts/release", "who may not zpopmin keeps what he has")],
  },
  {
    name: "next-of-the-same-client-has-a-message",
    brokenRule:
      "where the next holder is a request of the caller's client, the answer of the release is its grant",
    edits: [
      lua(
        "single/mutex",
        "is_own == '1' and client_of(token) or nil",
        "is_own == '2' and client_of(token) or nil",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "the answer is its grant, for the TTL of a reply"),
    ],
  },
  {
    name: "whose-token-is-adopted-learns-of-no-grant",
    brokenRule: "is_own: only who made the token learns from its release who has the lock now",
    edits: [lua("single/mutex", "is_own == '1' and client_of(token) or nil", "client_of(token)")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/release",
        "it is sent the message where the token was not the caller's own",
      ),
    ],
  },
  {
    name: "every-token-counts-as-our-own",
    brokenRule: "is_own: only who made the token learns from its release who has the lock now",
    edits: [
      redis("single/driver", "clientIdOf(token) === this.#registry.clientId;", 'clientIdOf(token) !== "";'),
    ],
    killers: [byRules("drivers/redis/single/handed-over", "goes to a caller of its maker by message")],
  },
  {
    name: "repeated-release-does-not-name-the-next-holder",
    brokenRule: "a release whose answer was lost names the next holder of the client again",
    edits: [
      lua(
        "single/mutex",
        "if holder and own_first and client and client_of(holder) == client then",
        "if holder == '' then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "a repeat names it again")],
  },
  {
    name: "answer-of-a-release-is-not-read",
    brokenRule:
      "where the next holder is a request of the caller's client, the answer of the release is its grant",
    edits: [redis("server/release-call", "    if (ttlMs !== undefined) {\n", "    if (ttlMs === null) {\n")],
    killers: [byRules("drivers/redis/single/handed-over", "by the answer of the release")],
  },
  {
    name: "grant-in-an-answer-lasts-as-one-by-message",
    brokenRule: "a queue member says two TTLs: of a grant by message, and of one that a reply tells",
    edits: [
      lua(
        "common/grant-waiter",
        "write_grant(token, whole_ttl, fence_count)",
        "write_grant(token, ttl, fence_count)",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "the answer is its grant, for the TTL of a reply"),
    ],
  },
  {
    name: "next-operation-sends-no-message",
    brokenRule: "a giver is that of one operation: the next one tells by message",
    edits: [
      lua(
        "common/dispatch",
        "holder, popped, lasts, releasing_client, handover_reply = found, waiter, nil, nil, nil",
        "holder, popped, lasts, handover_reply = found, waiter, nil, nil",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/release",
        "the next operation of the call sends messages again",
      ),
    ],
  },
  {
    name: "turn-is-given-before-the-next-request",
    brokenRule:
      "who gives others their turn sends acquire(new) and release(old), in this order, in one call (core-2, 4.1)",
    edits: [
      redis(
        "redlock/driver",
        "    const pending = this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key), true));\n    return {",
        "    const freed = this.release(given.key, given.token, engineExpiry(given.validity));\n    const pending = this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key), true));\n    return {",
      ),
      redis(
        "redlock/driver",
        "released: this.release(given.key, given.token, engineExpiry(given.validity)),",
        "released: freed,",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/handed-over", "travel in one call to each node, in this order")],
  },
  {
    name: "turn-that-is-given-may-find-the-queue-full",
    brokenRule:
      "an acquire in the call that gives the lock up is not subject to the queue's bound (core-2, 4.1)",
    edits: [lua("quorum/acquire", "is_new and wait ~= '3' and answer[3]", "is_new and answer[3]")],
    killers: [
      byServer("drivers/redis/protocol/scripts/handed-over", "the bound on the queue does not hold for it"),
    ],
  },
  {
    name: "vote-behind-a-release-is-told-by-message-only",
    brokenRule: "the release answers who has the vote now: a lost message costs no poll (core-2, 4.1)",
    edits: [lua("quorum/hand-over", "answer = { 1, 0, granted_token }", "answer = { 1, 0, '' }")],
    killers: [byRules("drivers/redis/redlock/handed-over", "is granted without a message")],
  },
  {
    name: "sleeper-waits-in-a-place-of-the-past",
    brokenRule:
      "a request begins anew where answers contradict the nodes' time by which it was written (core-2, 3.3)",
    edits: [redis("redlock/node-set", "      this.#era += 1;\n", "")],
    killers: [
      byRules("drivers/redis/redlock/late-votes", "a request that waits on a machine that sleeps is served"),
    ],
  },
  {
    name: "places-of-a-quorum-stay-ahead",
    brokenRule: "places begin anew from the new estimate of the nodes' time (core-2, 3.3)",
    edits: [redis("redlock/node-set", "      this.#lastTicket = 0; // places", "      // places")],
    killers: [byRules("drivers/redis/redlock/late-votes", "places begin anew")],
  },
  {
    name: "bound-holds-for-who-gives-a-grant-up",
    brokenRule: "an acquire beside a release in one call is not subject to the queue's bound (core-2, 4.1)",
    edits: [lua("single/mutex", "if is_new and tonumber(wait) < 3 and answer[3]", "if is_new and answer[3]")],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire-queue", "a full queue refuses, and keeps nobody"),
    ],
  },
  {
    name: "bound-holds-for-who-gives-a-share-up",
    brokenRule: "an acquire beside a release in one call is not subject to the queue's bound (core-2, 4.1)",
    edits: [lua("common/shared-lock", "not waits and tonumber(wait) < 3 and", "not waits and")],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "the queue has a bound")],
  },
  {
    name: "who-gives-a-grant-up-learns-of-no-run",
    brokenRule: "wait 3 asks for the run id, as 1 does; 4 does not, as 2",
    edits: [lua("single/mutex", "(wait == '1' or wait == '3') and run_id()", "wait == '1' and run_id()")],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire", "a waiter is told of which run of the server it is"),
    ],
  },
  {
    name: "who-gives-a-grant-up-is-refused-by-a-full-queue",
    brokenRule: "an acquire beside a release in one call is not subject to the queue's bound (core-2, 4.1)",
    edits: [redis("single/driver", "{ ignoresQueueLimit: true }", "{ ignoresQueueLimit: false }")],
    killers: [byRules("drivers/redis/single/handed-over", "is not refused by a full queue")],
  },
  {
    name: "share-takes-the-usual-path",
    brokenRule: "a token says of itself whether it shares the lock: the usual path is a mutex's",
    edits: [
      lua(
        "execute-single",
        "if name == 'acquire' and (string.byte(token, 67) or 58) <= 57 then",
        "if name == 'acquire' then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "writes the holder with its expiry")],
  },
  {
    name: "everybody-is-told-the-holder-s-ttl",
    brokenRule: "who is far behind is told when the holder's TTL ends if it asks once more",
    edits: [
      lua(
        "single/mutex",
        "(position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3",
        "redis.call('PTTL', lock_key)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire-queue", "the first three places are told")],
  },
  {
    name: "run-is-asked-for-with-each-message",
    brokenRule: "the server's identity is asked for once in a call",
    edits: [lua("common/waiters", "  if not known_run_id then\n", "  do\n")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/commands",
        "the run of the server is asked for once in a call",
      ),
    ],
  },
];
