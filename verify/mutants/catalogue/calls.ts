import { byKept, byRules, byServer, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of the usual calls to one server, and of the replies of a release. */
export const calls: readonly Mutant[] = [
  {
    name: "lone-operation-is-read-as-one-of-several",
    brokenRule: "a call with one operation passes its arguments directly, without JSON",
    edits: [lua("execute-single", "local is_single = #KEYS < 7", "local is_single = #KEYS == 1")],
    killers: [byServer("drivers/redis/protocol/scripts/commands", "an acquire of a free lock")],
  },
  {
    name: "several-operations-are-read-as-a-lone-one",
    brokenRule: "a call with several operations passes them as JSON",
    edits: [lua("execute-single", "local is_single = #KEYS < 7", "local is_single = #KEYS >= 4")],
    killers: [byServer("drivers/redis/protocol/scripts/commands", "several operations in one call")],
  },
  {
    name: "lone-operation-is-sent-as-several",
    brokenRule: "a call with one operation passes its arguments directly, without JSON",
    edits: [
      redis(
        "server/batch",
        "operations.length === 1 && !this.#withRunId",
        "operations.length === 0 && !this.#withRunId",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch", "a lone operation travels with plain arguments;")],
  },
  {
    name: "repeated-operations-keep-their-former-arguments",
    brokenRule: "a repeat has a new latest time, and requests a queue entry once the client is subscribed",
    edits: [
      redis(
        "single/request",
        '    this.args = ["acquire",',
        '    this.args = this.args[0] ? this.args : ["acquire",',
      ),
    ],
    killers: [byKept()],
  },
  {
    name: "repeated-votes-keep-their-former-arguments",
    brokenRule: "operations with other arguments have another text",
    edits: [
      redis("protocol/operation", "args !== latest.args[i])) {", "args[1] !== latest.args[i]?.[1])) {"),
    ],
    killers: [byRules("drivers/redis/server/batch", "operations that are performed")],
  },
  {
    name: "one-batch-in-flight",
    brokenRule: "two batches of half the size are in flight, so that client and server work at the same time",
    edits: [redis("server/batch", "const callsInFlight = 2;", "const callsInFlight: number = 1;")],
    killers: [byRules("drivers/redis/server/batch", "more operations share two calls")],
  },
  {
    name: "counter-is-read-without-a-grant",
    brokenRule: "a call uses TIME, and GET and SET of the counter, only if it grants",
    edits: [
      lua(
        "execute-single",
        "keep_counter()\nif is_proved then",
        "read_counter()\nkeep_counter()\nif is_proved then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/commands", "an operation without a grant: the counter"),
    ],
  },
  {
    name: "waiter-popped-by-a-fast-release-is-dropped",
    brokenRule: "a waiter that a script removes from the queue is granted, or put back after any error",
    hasCounterexample: true,
    edits: [lua("single/fast-release", "    removed_waiter = waiter\n", "    removed_waiter = nil\n")],
    killers: [byServer("drivers/redis/protocol/scripts/release", "a waiter of another kind stays")],
  },
  {
    name: "waiter-that-was-removed-is-lost-by-an-error",
    brokenRule: "a waiter that a script removes from the queue is granted, or put back after any error",
    hasCounterexample: true,
    edits: [
      lua(
        "common/dispatch",
        "  if removed_waiter and removed_waiter[1] then\n    put_back(removed_waiter)",
        "  if not removed_waiter and removed_waiter[1] then\n    put_back(removed_waiter)",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "a user without the right to del loses no waiter"),
    ],
  },
  {
    name: "unreadable-queue-does-not-stop-the-deletion",
    brokenRule:
      "release runs GET K, ZPOPMIN queue and DEL K in this order, so an unreadable queue leaves the lock unchanged",
    edits: [lua("single/fast-release", "  elseif not waiter.err then", "  else")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/release",
        "a user without the right to zpopmin keeps the lock",
      ),
    ],
  },
  {
    name: "next-request-of-the-same-client-is-notified",
    brokenRule:
      "if the next holder is a request of the releasing client, the reply of the release is its grant",
    edits: [
      lua(
        "single/mutex",
        "is_own == '1' and client_of(token) or nil",
        "is_own == '2' and client_of(token) or nil",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the reply is its grant, with the TTL")],
  },
  {
    name: "reply-of-a-release-grants-to-every-client",
    brokenRule:
      "only the client that created the token learns from its release which request is granted next",
    edits: [lua("single/mutex", "is_own == '1' and client_of(token) or nil", "client_of(token)")],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "the grant is notified if the token was not the"),
    ],
  },
  {
    name: "every-token-counts-as-our-own",
    brokenRule:
      "only the client that created the token learns from its release which request is granted next",
    edits: [
      redis(
        "single/driver",
        "isTokenOf(this.#registry.clientId, token);",
        "isTokenOf(token.slice(33, 65), token);",
      ),
    ],
    killers: [byRules("drivers/redis/single/handed-over", "a lease that another process has")],
  },
  {
    name: "repeated-release-does-not-name-the-next-holder",
    brokenRule: "the repeat of a release with a lost reply names the next holder of the client again",
    edits: [
      lua(
        "single/mutex",
        "if holder and own_first and client and client_of(holder) == client then",
        "if holder == '' then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "a repeat returns the")],
  },
  {
    name: "reply-of-a-release-is-not-read",
    brokenRule:
      "if the next holder is a request of the releasing client, the reply of the release is its grant",
    edits: [redis("server/release-call", "    if (ttlMs !== undefined) {\n", "    if (ttlMs === null) {\n")],
    killers: [byRules("drivers/redis/single/handed-over", "the next caller of the")],
  },
  {
    name: "grant-by-reply-lasts-as-one-by-notification",
    brokenRule: "a queue entry has two TTLs: one for a grant by notification, and one for a grant by reply",
    edits: [
      lua(
        "common/grant-waiter",
        "write_grant(token, whole_ttl, fence_count)",
        "write_grant(token, ttl, fence_count)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the reply is its grant, with the TTL")],
  },
  {
    name: "next-operation-sends-no-notification",
    brokenRule:
      "the releasing client belongs to one operation, and later operations of the call grant by notification",
    edits: [
      lua(
        "common/dispatch",
        "holder, removed_waiter, queue_ttl, releasing_client, handover_reply = found, waiter, nil, nil, nil",
        "holder, removed_waiter, queue_ttl, handover_reply = found, waiter, nil, nil",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "the next operation of the call sends")],
  },
  {
    name: "requeue-releases-before-its-next-request",
    brokenRule: "a client that requeues sends acquire for its next request and then release, in one call",
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
    name: "queue-limit-applies-to-a-requeue-on-a-node",
    brokenRule: "an acquire in the call that releases the lock ignores the bound of the queue",
    edits: [lua("quorum/acquire", "is_new and wait ~= '3' and answer[3]", "is_new and answer[3]")],
    killers: [byServer("drivers/redis/protocol/scripts/handed-over", "exempts that request from the bound")],
  },
  {
    name: "vote-after-a-release-is-granted-by-notification-only",
    brokenRule: "the reply of a release contains the next vote, so that a lost notification costs no poll",
    edits: [lua("quorum/hand-over", "answer = { 1, 0, granted_token }", "answer = { 1, 0, '' }")],
    killers: [byRules("drivers/redis/redlock/handed-over", "without other waiters")],
  },
  {
    name: "request-after-a-sleep-keeps-its-former-ticket",
    brokenRule: "a request starts again if replies contradict the estimate of the nodes' time in its ticket",
    edits: [redis("redlock/node-set", "      this.#era += 1;\n", "")],
    killers: [byRules("drivers/redis/redlock/late-votes", "a request that waits on a sleeping machine")],
  },
  {
    name: "tickets-of-a-quorum-stay-ahead",
    brokenRule: "after that, tickets follow the new estimate of the nodes' time",
    edits: [redis("redlock/node-set", "      this.#lastTicket = 0; // tickets", "      // tickets")],
    killers: [byRules("drivers/redis/redlock/late-votes", "tickets begin anew")],
  },
  {
    name: "queue-limit-applies-to-a-requeue",
    brokenRule: "an acquire next to a release in one call ignores the bound of the queue",
    edits: [lua("single/mutex", "if is_new and tonumber(wait) < 3 and answer[3]", "if is_new and answer[3]")],
    killers: [byServer("drivers/redis/protocol/scripts/acquire-queue", "a full queue refuses a new waiter")],
  },
  {
    name: "queue-limit-applies-to-a-requeue-of-a-shared-lock",
    brokenRule: "an acquire next to a release in one call ignores the bound of the queue",
    edits: [lua("common/shared-lock", "not waits and tonumber(wait) < 3 and", "not waits and")],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "is awaited in a queue")],
  },
  {
    name: "requeue-gets-no-run-id",
    brokenRule: "wait mode 3 requests the run id, as mode 1 does; modes 2 and 4 do not",
    edits: [lua("single/mutex", "(wait == '1' or wait == '3') and run_id()", "wait == '1' and run_id()")],
    killers: [byServer("drivers/redis/protocol/scripts/acquire", "a waiter gets the server's run if it")],
  },
  {
    name: "driver-applies-the-queue-limit-to-a-requeue",
    brokenRule: "an acquire next to a release in one call ignores the bound of the queue",
    edits: [redis("single/driver", "{ ignoresQueueLimit: true }", "{ ignoresQueueLimit: false }")],
    killers: [byRules("drivers/redis/single/handed-over", "is not refused by a full queue")],
  },
  {
    name: "shared-lock-uses-the-fast-path",
    brokenRule: "a token contains its mode, and only a mutex uses the fast path",
    edits: [
      lua(
        "execute-single",
        "if name == 'acquire' and (string.byte(token, 67) or 58) <= 57 then",
        "if name == 'acquire' then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "stores the holder with its")],
  },
  {
    name: "every-waiter-gets-the-holder-s-ttl",
    brokenRule: "a waiter at a later position gets the holder's TTL only when it repeats its request",
    edits: [
      lua(
        "single/mutex",
        "(position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3",
        "redis.call('PTTL', lock_key)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/acquire-queue", "the first three waiters")],
  },
  {
    name: "run-id-is-read-for-each-notification",
    brokenRule: "a call reads the run id of the server at most once",
    edits: [lua("common/waiters", "  if not known_run_id then\n", "  do\n")],
    killers: [
      byServer("drivers/redis/protocol/scripts/commands", "a release that hands the lock to another client"),
    ],
  },
];
