import { byRules, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of the local queue and of hand-over in memory. */
export const localQueue: readonly Mutant[] = [
  {
    name: "every-local-waiter-sends-a-request",
    brokenRule: "only the head of the local queue has a request on the server",
    edits: [
      edit(
        "local/local-queue.ts",
        "return this.#atEngineCount < Math.max(",
        "return this.#atEngineCount < 1_000 * Math.max(",
      ),
    ],
    killers: [byRules("local/local-queue", "only the first caller in the queue contends")],
  },
  {
    name: "dequeued-caller-stops-the-local-queue",
    brokenRule: "a waiter that aborts or times out does not stop the local queue",
    edits: [
      edit(
        "local/local-queue.ts",
        "      this.#waiting.delete(waiter.queueNode);\n    }\n    this.#advance();",
        "      this.#waiting.delete(waiter.queueNode);\n      this.#advance();\n    }",
      ),
    ],
    killers: [byRules("local/local-queue", "after a contender leaves, the next caller contends")],
  },
  {
    name: "hand-overs-without-end",
    brokenRule: "after handover.max hand-overs or handover.maxMs a requeue admits other processes",
    edits: [
      edit(
        "local/local-queue.ts",
        "return handoverRun?.isQueued === true && handoverRun.handovers < max && now - handoverRun.since < maxMs;",
        "return handoverRun?.isQueued === true && max > 0 && now >= handoverRun.since && maxMs >= 0;",
      ),
    ],
    killers: [
      byRules(
        "local/local-queue",
        "after handover.max hand-overs the next caller requeues, so that other processes get their turn",
      ),
      byRules("local/local-queue", "each run has its own bound"),
    ],
  },
  {
    name: "repeat-requests-other-numbers",
    brokenRule: "all repeats of a request have the same count of numbers",
    edits: [
      edit(
        "local/acquire-request.ts",
        "    fencingCount: isContended ? fencingCountFor(host, options) : 1,\n",
        "    get fencingCount() {\n      return host.isContended(key, options.lockMode) ? fencingCountFor(host, options) : 1;\n    },\n",
      ),
      edit(
        "local/acquire-request.ts",
        "  const isContended = wait?.isRequeue === true || host.isContended(key, options.lockMode);\n",
        "",
      ),
    ],
    killers: [
      byRules(
        "lease/lease-waiting",
        "a request repeats its first arguments, however many callers join the local queue while it waits",
      ),
    ],
  },
  {
    name: "a-lone-caller-has-a-block",
    brokenRule:
      "a grant has a block of numbers only if another caller of the process waits, or the call releases the lock",
    edits: [
      edit(
        "local/coordinator.ts",
        "(queue.localWaiterCount > 0 || queue.isFull)",
        "(queue.localWaiterCount >= 0 || queue.isFull)",
      ),
    ],
    killers: [
      byRules("drivers/memory/driver", "the lease of a lone caller is current for other processes too"),
    ],
  },
  {
    name: "lost-lease-is-handed-over",
    brokenRule: "only a valid lease is handed over",
    edits: [
      edit(
        "local/acquisition.ts",
        "return (\n      renew &&\n      leaseState.canBeHandedOver &&\n      used",
        "return (renew && used",
      ),
      edit(
        "local/acquisition.ts",
        "      remainingValidityMs(leaseState.validity, clock) >= needed\n",
        "      needed > 0 && remainingValidityMs(leaseState.validity, clock) < Infinity\n",
      ),
      edit(
        "lease/lease-state.ts",
        "    if (this.currentLoss()) {\n      return releaseLostGrant(",
        "    if (this.#loss) {\n      return releaseLostGrant(",
      ),
    ],
    killers: [
      byRules(
        "lease/lease-numbers",
        "a lease that ended while the event loop was blocked is not handed over",
      ),
    ],
  },
  {
    name: "handed-over-with-little-validity",
    brokenRule: "a lease is handed over only with at least a third of min(ttl, claimMs) left",
    edits: [
      edit(
        "local/acquisition.ts",
        "      remainingValidityMs(leaseState.validity, clock) >= needed\n",
        "      remainingValidityMs(leaseState.validity, clock) >= 0 * needed\n",
      ),
    ],
    killers: [
      byRules("lease/lease-numbers", "a lease with less than a third of its TTL is released to the engine"),
    ],
  },
  {
    name: "handed-over-to-a-caller-without-renewal",
    brokenRule: "a lease is handed over only to a caller that renews",
    edits: [
      edit(
        "local/acquisition.ts",
        "return (\n      renew &&\n      leaseState.canBeHandedOver",
        "return (\n      (renew || leaseState.canBeHandedOver) &&\n      leaseState.canBeHandedOver",
      ),
    ],
    killers: [byRules("lease/lease-numbers", "a caller without renewal gets a whole TTL")],
  },
  {
    name: "transferred-lease-is-handed-over",
    brokenRule: "a transferred lease is never handed over",
    edits: [
      edit(
        "lease/lease-state.ts",
        '    this.#end("transferred", "transferred");\n    this.#host.leaseEnded(this);\n',
        '    this.#state = "transferred";\n',
      ),
    ],
    killers: [byRules("lease/lease-state", "transferred lease")],
  },
  {
    name: "refused-release-counts-as-released",
    brokenRule: "only a repeat of a release with a lost reply may count not-held as released",
    edits: [
      redis(
        "server/release-call",
        'this.#isUncertain ||= outcomeOf(error) === "unknown";',
        "this.#isUncertain ||= outcomeOf(error) !== undefined;",
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a release that is refused at first returns false"),
    ],
  },
  {
    name: "grant-that-races-an-abort-is-kept",
    brokenRule: "a grant for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [
      edit("local/coordinator.ts", "        this.abandonGrant(acquired.grant);\n", ""),
      edit("local/acquisition.ts", "      this.#host.abandonGrant(result.grant);\n", ""),
    ],
    killers: [
      byRules(
        "lease/lease-waiting",
        "a caller that aborts while its grant is under way leaves the lock free",
      ),
    ],
  },
  {
    name: "next-local-waiter-waits-for-the-timed-out-one",
    brokenRule:
      "if the head leaves the local queue, the next caller sends its request, even while the head looks up the holder",
    edits: [redis("server/timed-out", "  waiter?.onDequeued();\n", "")],
    killers: [
      byRules(
        "drivers/redis/server/timed-out",
        "the next waiter has its queue entry before that, on 1 nodes",
      ),
    ],
  },
  {
    name: "callers-with-different-permits-in-one-local-queue",
    brokenRule: "permits of a semaphore are handed over only between requests of the same weight",
    edits: [edit("local/key-queues.ts", "const name = `${permits}/${limit}`;", "const name = `${limit}`;")],
    killers: [
      byRules(
        "local/local-queue",
        "callers share a queue only with the same number of permits and the same limit",
      ),
      byRules(
        "drivers/memory/driver",
        "semaphore: a lease is never handed over to a caller with another number of permits",
      ),
      bySim(1, 60, "semaphore,memory"),
    ],
  },
  {
    name: "all-waiters-of-a-semaphore-wait-in-memory",
    brokenRule:
      "the first waiting caller of a semaphore is in the engine's queue, so a raised limit reaches it",
    edits: [
      edit(
        "local/key-queues.ts",
        "new LocalQueue(Math.floor(limit / permits), 1)",
        "new LocalQueue(Math.floor(limit / permits), 0)",
      ),
    ],
    killers: [
      byRules("drivers/memory/driver", "semaphore: another limit rejects until the limit is changed for all"),
      byRules("kinds/semaphore", "a higher limit admits waiters in order, as far as permits suffice"),
    ],
  },
  {
    name: "refused-caller-admits-the-next",
    brokenRule: "all users of a semaphore must name the same limit, even after a refused caller",
    edits: [edit("local/acquisition.ts", "this.#hasWaited && this.#queue.wasGranted", "this.#hasWaited")],
    killers: [
      byRules("kinds/semaphore-runs", "a local waiter after callers with a wrong limit is refused too"),
    ],
  },
  {
    name: "new-caller-names-any-limit",
    brokenRule: "only a caller that waited after leases of the same limit may use the existing limit",
    edits: [
      edit(
        "local/acquisition.ts",
        "this.#hasWaited && this.#queue.wasGranted",
        "(this.#hasWaited || !this.#hasWaited) && this.#queue.wasGranted",
      ),
    ],
    killers: [byRules("kinds/semaphore-runs", "a new caller sends the present limit")],
  },
];
