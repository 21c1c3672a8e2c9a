import { byRules, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** The local line, hand-over, and what is given up: section 6. */
export const line: readonly Mutant[] = [
  {
    name: "everybody-in-line-contends",
    breaks: "only the head has a request on the server (6)",
    edits: [
      edit("line.ts", "return this.#contending < Math.max(", "return this.#contending < 1_000 * Math.max("),
    ],
    killers: [byRules("line", "only the first in line contends")],
  },
  {
    name: "who-leaves-the-line-stops-it",
    breaks: "aborted or timed-out waiters leave the line without breaking it (6)",
    edits: [
      edit(
        "line.ts",
        "      this.#waiting.delete(caller.link);\n    }\n    this.#advance();",
        "      this.#waiting.delete(caller.link);\n      this.#advance();\n    }",
      ),
    ],
    killers: [byRules("line", "a contender that leaves hands its turn on")],
  },
  {
    name: "a-run-without-end",
    breaks:
      "at most handover.max times in a row and for at most handover.maxMs; then requeue lets the other processes in (6)",
    edits: [
      edit(
        "line.ts",
        "const runGoesOn = run.handovers < limits.max && now - run.since < limits.maxMs;",
        "const runGoesOn = limits.max > 0 && now >= run.since;",
      ),
    ],
    killers: [
      byRules("line", "after so many hand-overs the hold is passed on"),
      byRules("line", "each run has a bound of its own"),
    ],
  },
  {
    name: "a-repeat-asks-for-other-numbers",
    breaks: "all repeats of a request ask for as many numbers as the first",
    edits: [
      edit(
        "acquire.ts",
        "    want: isContended ? blockFor(contention, options) : 1,\n",
        "    get want() {\n      return contention.isContended(key, options.share) ? blockFor(contention, options) : 1;\n    },\n",
      ),
      edit(
        "acquire.ts",
        "  const isContended = turn?.from !== undefined || contention.isContended(key, options.share);\n",
        "",
      ),
    ],
    killers: [byRules("hold-waiting", "a request asks for what it asked first")],
  },
  {
    name: "a-lone-caller-has-a-block",
    breaks: "a block of numbers only where another caller of the process waits, or gives the lock up",
    edits: [
      edit(
        "contention.ts",
        "(line.waitingCount > 0 || line.isFull)",
        "(line.waitingCount >= 0 || line.isFull)",
      ),
    ],
    killers: [byRules("drivers/memory", "the lease of a lone caller is current for other processes too")],
  },
  {
    name: "what-is-lost-is-handed-over",
    breaks: "handed over only a lease that is valid (6)",
    edits: [
      edit("acquire.ts", "return renew && hold.isOurs && used", "return renew && used"),
      edit(
        "acquire.ts",
        " && leftOf(hold.validity, clock) >= needed;",
        " && needed > 0 && leftOf(hold.validity, clock) < Infinity;",
      ),
      edit(
        "hold.ts",
        "    if (this.lossNow()) {\n      // Ours no more",
        "    if (this.#loss) {\n      // Ours no more",
      ),
    ],
    killers: [byRules("hold-runs", "a lease that ended while the event loop was blocked is nobody's")],
  },
  {
    name: "handed-over-with-little-left",
    breaks: "to a caller that gets at least a third of min(ttl, claimMs) (6)",
    edits: [
      edit(
        "acquire.ts",
        " && leftOf(hold.validity, clock) >= needed;",
        " && leftOf(hold.validity, clock) >= 0 * needed;",
      ),
    ],
    killers: [byRules("hold-runs", "a lease with less than a third of its TTL left is passed on")],
  },
  {
    name: "handed-over-to-who-does-not-renew",
    breaks: "to a caller that renews (6)",
    edits: [
      edit("acquire.ts", "return renew && hold.isOurs", "return (renew || hold.isOurs) && hold.isOurs"),
    ],
    killers: [byRules("hold-runs", "a caller that does not renew has a whole TTL")],
  },
  {
    name: "transferred-lease-is-kept-here",
    breaks: "handed over only a lease that was never transferred (6)",
    edits: [
      edit(
        "hold.ts",
        '    this.#end("transferred", "transferred");\n    this.#keeper.ended(this);\n',
        '    this.#state = "transferred";\n',
      ),
    ],
    killers: [byRules("hold", "transferred lease")],
  },
  {
    name: "refused-release-counts-as-released",
    breaks: "a release whose *reply was lost* and whose repeat says not-held counts as released (3)",
    edits: [
      redis(
        "releaser",
        'this.#isUncertain ||= outcomeOf(error) === "unknown";',
        "this.#isUncertain ||= outcomeOf(error) !== undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/late-requests", "had been lost")],
  },
  {
    name: "grant-that-races-an-abort-is-kept",
    breaks: "any grant for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      edit("contention.ts", "        this.decline(acquired.grant);\n", ""),
      edit("acquire.ts", "      this.#contention.decline(acquired.grant);\n", ""),
    ],
    killers: [
      byRules("hold-waiting", "a caller that aborts while its grant is under way leaves the lock free"),
    ],
  },
  {
    name: "the-next-in-line-waits-for-a-farewell",
    breaks:
      "if the head leaves, the next goes to the server (6): also while the head is told who holds the lock",
    edits: [redis("farewell", "  caller?.left();\n", "")],
    killers: [byRules("drivers/redis/farewell", "the next in line has its place before that, on 1 nodes")],
  },
  {
    name: "callers-with-different-permits-in-one-line",
    breaks: "hand-over of a semaphore: only between requests of the same weight",
    edits: [edit("key-lines.ts", "const name = `${permits}/${limit}`;", "const name = `${limit}`;")],
    killers: [
      byRules("line", "callers stand in one line only if"),
      byRules("drivers/memory", "semaphore: who wants another number of permits is handed nothing"),
      bySim(1, 60, "semaphore,memory"),
    ],
  },
  {
    name: "all-of-a-semaphore-wait-in-memory",
    breaks:
      "of a semaphore the first caller that waits stands in the queue of the engine, so a raised limit reaches it",
    edits: [
      edit(
        "key-lines.ts",
        "new Line(Math.floor(limit / permits), 1)",
        "new Line(Math.floor(limit / permits), 0)",
      ),
    ],
    killers: [
      byRules("drivers/memory", "semaphore: another limit is refused, until it is changed for all"),
      byRules("kinds/semaphore", "a higher limit lets in whom it has room for, in order"),
    ],
  },
  {
    name: "who-was-refused-lets-the-next-in",
    breaks: "all who use a semaphore have to name the same limit: also behind one that was refused",
    edits: [edit("acquire.ts", "this.#hasWaited && this.#line.wasGranted", "this.#hasWaited")],
    killers: [
      byRules("kinds/semaphore-runs", "who waits behind callers that name a wrong limit is refused too"),
    ],
  },
  {
    name: "a-newcomer-names-any-limit",
    breaks: "only who waited behind leases of the same limit takes the limit that there is",
    edits: [
      edit(
        "acquire.ts",
        "this.#hasWaited && this.#line.wasGranted",
        "(this.#hasWaited || !this.#hasWaited) && this.#line.wasGranted",
      ),
    ],
    killers: [byRules("kinds/semaphore-runs", "who comes anew names the present limit")],
  },
];
