import { byRules, byServer, bySim, redis, type Mutant } from "../mutant.ts";

/** Mutants of grants by notification, and of polls without one. */
export const notifications: readonly Mutant[] = [
  {
    name: "claim-is-not-extended",
    brokenRule: "a client that is granted by notification sends extend(ttl) at once, also with renew: false",
    edits: [
      redis(
        "single/request",
        "const isClaim = grant.ttlMs < this.#request.ttlMs;",
        "const isClaim = grant.ttlMs < 0;",
      ),
    ],
    killers: [byRules("drivers/redis/single/late-requests", "a grant by notification soon has its")],
  },
  {
    name: "claim-of-a-quorum-is-not-extended",
    brokenRule: "a client that is granted by notification sends extend(ttl) at once, also with renew: false",
    edits: [
      redis(
        "redlock/vote",
        "const isClaim = grant.ttlMs < ttlMs;",
        "const isClaim = grant.ttlMs < 0 * ttlMs;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "a grant by notification soon has its")],
  },
  {
    name: "waiter-without-its-poll",
    brokenRule:
      "waiters poll one after another from the end of the holder's TTL on, and each at the latest after 5 s",
    edits: [
      redis(
        "server/poll-delays",
        "  if (waitMs < 0) {\n    return pollMs;\n  }\n",
        "  if (waitMs < 0 || pollMs > 0) {\n    return 86_400_000;\n  }\n",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("fake-redis/fake-redis", "a grant whose notification was lost is found by the poll"),
    ],
  },
  {
    name: "first-waiters-poll-late",
    brokenRule: "waiters poll one after another from the end of the holder's TTL on",
    edits: [
      redis(
        "server/poll-delays",
        "return Math.min(pollMs, Math.max(minPollMs, waitMs + spread));",
        "return Math.min(pollMs, Math.max(pollMs, waitMs + spread));",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/single/waiters",
        "the next is served within a second of the TTL when the holder was killed",
      ),
    ],
  },
  {
    name: "only-the-first-waiters-poll-in-time",
    brokenRule: "waiters poll one after another from the end of the holder's TTL on",
    edits: [redis("server/poll-delays", "  if (waitMs < 0) {", "  if (waitMs < 0 || position > 2) {")],
    killers: [
      byServer("drivers/redis/single/waiters", "so is a waiter that was after four others when it sent its"),
    ],
  },
  {
    name: "queues-before-its-subscription-is-proved",
    brokenRule:
      "a driver may queue only after its channel is proved: a script has published, counted a receiver, and the client received the message",
    edits: [
      redis(
        "single/request",
        '(this.#ignoresQueueLimit || server.notificationStatus === "verified")',
        "(this.#ignoresQueueLimit || this.waits)",
      ),
    ],
    killers: [
      byServer("drivers/redis/single/unsubscribed-waiters", "does not queue before its subscription"),
    ],
  },
  {
    name: "queues-on-a-node-before-its-subscription-is-proved",
    brokenRule:
      "a driver may queue only after its channel is proved: a script has published, counted a receiver, and the client received the message",
    edits: [
      redis(
        "redlock/vote-state",
        'return this.node.server.notificationStatus === "verified";',
        "return this.node.server.notificationStatus !== undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/lost-replies", "a client that never received a notification")],
  },
  {
    name: "subscription-is-proved-without-a-receipt",
    brokenRule: "the client must receive the proof, because a counted receiver may be another connection",
    edits: [
      redis(
        "server/subscriber",
        "receivers === 0 || !(await Promise.race([received, timedOut]))",
        "receivers === 0 || !(await Promise.race([received, timedOut, Promise.resolve(true)]))",
      ),
    ],
    killers: [byServer("drivers/redis/single/unsubscribed-waiters", "does not queue before it received")],
  },
  {
    name: "subscription-is-proved-once",
    brokenRule: "the subscription is proved again after each reconnect",
    edits: [
      redis(
        "server/subscriber",
        '    this.#status = "unverified";\n    this.#ping = undefined;',
        "    this.#ping = undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/single/late-requests", "a waiter without a subscription adds no")],
  },
  {
    name: "waiters-do-not-retry-after-a-subscription",
    brokenRule: "on every subscription waiting requests send acquire again",
    edits: [
      redis(
        "single/request-registry",
        "      if (request.wasSent && request.waits && request.server === server) {\n        request.sendIfOpen();",
        '      if (request.waits && request.token === "") {\n        request.sendIfOpen();',
      ),
    ],
    killers: [
      byRules(
        "fake-redis/fake-redis",
        "a lost subscription: a missed grant is found as soon as the subscription is back",
      ),
    ],
  },
  {
    name: "votes-are-not-requested-again-after-a-subscription",
    brokenRule: "on every subscription waiting requests send acquire again",
    edits: [redis("redlock/node-events", "      }\n    }\n    this.#retry(index);\n", "      }\n    }\n")],
    killers: [
      byRules(
        "drivers/redis/redlock/lost-replies",
        "changes during a loss of notifications are found as soon",
      ),
    ],
  },
  {
    name: "malformed-break-throws",
    brokenRule: "a malformed notification is counted and ignored",
    edits: [
      redis(
        "protocol/messages",
        "  try {\n    return JSON.parse(text) as unknown;\n  } catch {\n    return undefined;\n  }",
        "  return JSON.parse(text) as unknown;",
      ),
    ],
    killers: [byRules("drivers/redis/protocol/messages", "no published text causes an exception")],
  },
  {
    name: "any-number-of-a-notification-is-accepted",
    brokenRule: "a malformed notification is counted and ignored",
    edits: [redis("protocol/messages", "Number.isSafeInteger(number) ? number : undefined", "number")],
    killers: [byRules("drivers/redis/protocol/messages")],
  },
  {
    name: "notification-may-name-a-reserved-key",
    brokenRule: "a malformed notification is counted and ignored",
    edits: [
      redis("protocol/messages", 'lock !== "" && !isReserved(lock)', 'lock !== "" || isReserved(lock)'),
    ],
    killers: [byRules("drivers/redis/protocol/messages")],
  },
];
