import {
  at,
  element,
  call,
  condition,
  literal,
  negation,
  operand,
  operation,
  returned,
  statement,
  value,
} from "../aim.ts";
import { byKept, byRules, byServer, bySim, mutant, type Mutant } from "../mutant.ts";
import { by, byArgument, removed, withArgument, withoutArgument } from "../syntax/operators.ts";

const scripts = "drivers/redis/protocol/scripts";

/** The conditions of an acquire in its lone form, in the loop of a batch, and with the release of an older token. */
const loneAcquire = condition("EXISTS", "ARGV", "lock_key");
const fastAcquire = condition("EXISTS", "operations");
const requeue = condition("EXISTS", "is_held");

/** One Redis server: its scripts, the queue, numbers, and locks that holders share. */
export const server: readonly Mutant[] = [
  mutant(
    "extension-shortens-a-ttl",
    "protocol#operations-of-one-server: **Nothing shortens a TTL.**",
    at("execute-single: raise_ttl", call("max"), byArgument(2)),
    byServer(`${scripts}/acquire`, "a repeat with a shorter TTL never"),
  ),
  mutant(
    "extension-writes-nothing-if-the-ttl-stays",
    "protocol#operations-of-one-server: **An extension always writes**, even if the TTL stays.",
    at("execute-single: raise_ttl", call("PEXPIRE", "lock_key"), withArgument("'GT'")),
    byServer(`${scripts}/extend`, "waits for the write: a mutex"),
  ),
  mutant(
    "every-token-holds-the-lock",
    "protocol#terms: **A token has one owner, forever.**",
    at("execute-single: mutex.acquire", operation("==", "holder"), by("true")),
    byServer(`${scripts}/acquire`, "a token with the same random part but another client or ticket"),
  ),
  mutant(
    "queue-has-no-order",
    "guarantees#the-promises: Waiters are served in order of arrival",
    at("execute-single: enqueue", element("ticket_of"), by("0")),
    bySim(1, 60),
  ),
  mutant(
    "try-overtakes-the-queue",
    "protocol#operations-of-one-server: A try comes after all waiters.",
    [
      at("execute-single:", [loneAcquire, call("EXISTS", "queue")], withoutArgument(3)),
      at("execute-single: acquire_free", condition("EXISTS"), by("true")),
    ],
    byServer(`${scripts}/acquire-queue`, "a try on a free lock comes after every waiter, alone"),
  ),
  mutant(
    "try-beside-others-overtakes-the-queue",
    "protocol#operations-of-one-server: A try comes after all waiters.",
    at("execute-single:", [fastAcquire, call("EXISTS", "queue")], withoutArgument(3)),
    byServer(`${scripts}/acquire-queue`, "a try on a free lock comes after every waiter, beside"),
  ),
  mutant(
    "requeue-overtakes-the-queue",
    "protocol#waiting-and-hand-over: If the call has only these two operations and the queue is empty, the script writes `K` for `new` at once",
    at("execute-single:", [requeue, operation("==", "EXISTS")], by("true")),
    byServer(`${scripts}/requeue`, "grants the lock to a waiter of another process"),
  ),
  mutant(
    "requeue-takes-another's-lock",
    "protocol#waiting-and-hand-over: If the call has only these two operations and the queue is empty, the script writes `K` for `new` at once",
    at("execute-single:", value("is_held"), by("true")),
    byServer(`${scripts}/requeue`, "changes nothing of a lock that another token holds"),
  ),
  mutant(
    "registration-needs-memory",
    "protocol#operations-of-one-server: **With full memory only new requests are refused.**",
    at("handshake:", statement("DEL"), removed),
    byServer(`${scripts}/full-memory`, "registers a client and publishes its text"),
  ),
  mutant(
    "operator-breaks-a-later-grant",
    "protocol#operations-of-one-server: **A break names a number inside the present block.**",
    at("execute-single: mutex.breakGrant", operation("<", "own_first"), by("false")),
    byServer(`${scripts}/break`, "the number of an old grant does not break"),
  ),
  mutant(
    "metadata-remains-after-a-release",
    "protocol#one-server-and-each-slot-of-a-cluster: A released key leaves nothing.",
    at("execute-single:", call("DEL", "lock_key", "KEYS"), withoutArgument(3)),
    byServer(`${scripts}/release`, "the holder releases the lock with"),
  ),
  mutant(
    "metadata-remains-after-a-requeue",
    "protocol#one-server-and-each-slot-of-a-cluster: A released key leaves nothing.",
    at("execute-single:", condition("byte", "value"), by("false")),
    byServer(`${scripts}/requeue`, "removes the metadata of the older token"),
  ),
  mutant(
    "refused-publish-drops-the-waiter",
    "protocol#notifications: If the publish fails, the script restores the queue entry and the operation fails",
    at("execute-single: grant_waiter", statement("put_back"), removed),
    byServer(`${scripts}/grant`, "a refused publish loses no waiter"),
  ),
  mutant(
    "claim-is-not-extended",
    "protocol#waiting-and-hand-over: A grant by notification lasts for `claimMs` (3 s), and the holder extends at once.",
    at("ServerAcquire.#isClaim", operation("<", "ttlMs"), by("false")),
    byRules("drivers/redis/single/late-requests", "a grant by notification soon has its"),
  ),
  mutant(
    "metadata-of-a-waiter-come-late",
    "protocol#waiting-and-hand-over: extends its lease as soon as its work has lasted 5 ms, and the extension brings them.",
    at("ServerAcquire.#isClaim", operation("!==", "info"), by("false")),
    byRules("drivers/redis/single/handed-over", "other processes soon see the reason of a caller"),
  ),
  mutant(
    "first-waiters-poll-late",
    "protocol#waiting-and-hand-over: when the holder's TTL has passed, 20 ms apart; after 50 ms at the earliest, 5 s at the latest",
    at("queuedPollDelay", call("max", "minPollMs"), by("pollMs")),
    byServer(
      "drivers/redis/single/waiters",
      "the next is served within a second of the TTL when the holder was killed",
    ),
  ),
  mutant(
    "queues-before-its-subscription-is-verified",
    "protocol#notifications: **A client queues only after its subscription is verified**",
    at("ServerAcquire.send", operation("===", "notificationStatus"), by("true")),
    byServer("drivers/redis/single/unsubscribed-waiters", "does not queue before its subscription"),
  ),
  mutant(
    "accepted-counter-is-refused",
    "protocol#numbers-and-the-counter: **An accepted counter** has a leading 0, and may be further ahead",
    at("execute-single: read_counter", operation("~=", "48"), by("true")),
    byServer(`${scripts}/fencing-counter`, "unless an operator has accepted"),
  ),
  mutant(
    "every-number-of-a-block-is-reported-as-the-last",
    "protocol#numbers-and-the-counter: `unknown` occurs inside a block",
    at("LeaseState.#requestExtension", call("mayHandOver"), by("false")),
    byRules("fake-redis/fake-redis", "a lease that was handed over in memory is never current"),
  ),
  mutant(
    "number-of-the-last-grant-is-given-again",
    "guarantees#the-promises: of each grant is larger than all earlier tokens of the key, whatever the clocks of clients show.",
    at("execute-single: next_fence", [call("max"), literal("1")], by("0")),
    byServer(`${scripts}/fencing-counter`, "gives the grants of one call consecutive"),
  ),
  mutant(
    "numbers-begin-again-after-a-lost-counter",
    "protocol#numbers-and-the-counter: The server's time is the floor.",
    at("execute-single: next_fence", call("max"), byArgument(1)),
    byRules("fake-redis/fake-redis", "a restart without its data: the fencing tokens still rise"),
  ),
  mutant(
    "free-lock-is-granted-too-late",
    "protocol#late-operations: refused after its latest time: `commandTimeoutMs` + 3 s after the sending, by the earliest server time",
    at("execute-single:", [loneAcquire, operation("<=", "1000")], by("true")),
    byServer(`${scripts}/late-operations`, "does nothing to a free lock"),
  ),
  mutant(
    "requeue-is-granted-too-late",
    "protocol#late-operations: refused after its latest time: `commandTimeoutMs` + 3 s after the sending, by the earliest server time",
    at("execute-single:", [requeue, operation("<=", "1000")], by("true")),
    byServer(`${scripts}/requeue`, "after its latest time releases the older token"),
  ),
  mutant(
    "repeated-operations-keep-their-former-arguments",
    "protocol#late-operations: A request on one server continues with a new token, ticket and latest time",
    at("ServerAcquire.send", value("args"), by("this.args[0] ? this.args : $")),
    byKept(),
  ),
  mutant(
    "late-grant-is-not-released",
    "protocol#clean-up: causes a release at once if the request ended without a grant, or if the release of its grant has begun.",
    at("ServerAcquire.#handleLateReply", condition(), by("false")),
    byRules("fake-redis/fake-redis", "a grant after the caller's timeout is released at once"),
    bySim(1, 60, "reordered,server"),
  ),
  mutant(
    "release-is-sent-once",
    "protocol#clean-up: `server/releases.ts` releases the token and retries, with growing pauses.",
    at("ReleaseQueue.retry", operand("isTransient"), by("false")),
    byServer("integration/single/release-goes-on", "a release without a reply of the engine"),
  ),
  mutant(
    "clean-up-ends-with-its-first-reply",
    "protocol#clean-up: **A clean-up ends with a release that was answered after the latest time of the token's last request**",
    at("ReleaseQueue.answered", condition(), by("true")),
    byRules(
      "drivers/redis/single/late-clean-up",
      "a request that is executed after its clean-up leaves no grant",
    ),
  ),
  mutant(
    "clean-up-hides-the-grant-from-its-release",
    'protocol#clean-up: A repeated release that is answered "not ours" counts as released',
    at("ReleaseCall.answered", statement("grantFound"), removed),
    byKept(),
  ),
  mutant(
    "clone-keeps-its-client-id",
    "guarantees#no-guarantee: A clone that receives the subscription check of another clone takes a new client id.",
    at("NotificationDispatcher.#deliver", statement("cloned"), removed),
    byRules("drivers/redis/single/clones-apart", "that notices the other waits with"),
  ),
  mutant(
    "queue-entry-ends-by-the-estimate-alone",
    "protocol#estimates-of-the-servers-clock: With a deadline in the past each hand-over would skip the waiter",
    at("ServerClock.errorAfterMs", returned(), by("0")),
    byKept(),
  ),
  mutant(
    "next-local-waiter-waits-for-the-timed-out-one",
    "guarantees#the-promises: A free key with a waiter [is granted](#progress).",
    at("waitTimedOut", statement("onDequeued"), removed),
    byRules("drivers/redis/server/timed-out", "the next waiter has its queue entry before that, on 1 nodes"),
  ),
  mutant(
    "try-ignores-the-holders",
    "protocol#other-kinds: A waiter is granted if the sum of weights stays within the limit, and no earlier waiter exists.",
    at("execute-single: try_acquire", operation(">", "used"), by("false")),
    bySim(1, 40, "server,read-write"),
  ),
  mutant(
    "reader-overtakes-a-waiting-writer",
    "protocol#other-kinds: So a heavy request is not starved.",
    [
      at("execute-single: try_acquire", operand("first_waiter"), by("false")),
      at("execute-single: shared.acquire", negation("first_waiter"), by("true")),
    ],
    byServer(`${scripts}/share-grant`, "is not given to a try before"),
  ),
  mutant(
    "one-permit-above-the-limit",
    "guarantees#the-promises: A semaphore never has more than `limit` permits in use.",
    at("execute-single: serve", operation(">", "used"), by("$ + 1")),
    bySim(1, 40, "server,semaphore"),
  ),
  mutant(
    "latch-forgotten-while-open",
    "protocol#other-kinds: An opened latch notifies each waiting process once, and stays until its TTL has passed.",
    at("execute-single: latch.countDown", statement("write"), removed),
    byRules("fake-redis/fake-redis", "latch: an open latch stays open"),
  ),
  mutant(
    "latch-counts-a-late-count",
    "protocol#late-operations: refused after its latest time, because the next latch of the key may exist",
    at("execute-single: latch.countDown", operation(">", "now_ms"), by("false")),
    byServer(`${scripts}/latch`, "a request that comes too late"),
  ),
];
