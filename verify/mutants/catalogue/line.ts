import { byRules, edit, redis, type Mutant } from "../mutant.ts";

/** The local line, hand-over, and what is given up: section 6. */
export const line: readonly Mutant[] = [
  {
    name: "everybody-in-line-contends",
    breaks: "only the head has a request on the server (6)",
    edits: [
      edit("line.ts", "if (next && !this.#contender && !this.#holder) {", "if (next && !this.#holder) {"),
    ],
    killers: [byRules("line", "only the first in line contends")],
  },
  {
    name: "who-leaves-the-line-stops-it",
    breaks: "aborted or timed-out waiters leave the line without breaking it (6)",
    edits: [
      edit(
        "line.ts",
        "      this.#contender = undefined;\n    }\n    this.#advance();",
        "      this.#contender = undefined;\n      return;\n    }\n    this.#advance();",
      ),
    ],
    killers: [byRules("line", "a contender that leaves hands its turn on")],
  },
  {
    name: "a-run-without-end",
    breaks:
      "at most handover.max times in a row and for at most handover.maxMs; then passOn lets the other processes in (6)",
    edits: [
      edit(
        "line.ts",
        "const runGoesOn = this.#handovers < limits.max && now - this.#runSince < limits.maxMs;",
        "const runGoesOn = limits.max > 0 && now >= this.#runSince;",
      ),
    ],
    killers: [byRules("line", "after so many hand-overs the hold is passed on")],
  },
  {
    name: "a-repeat-asks-for-other-numbers",
    breaks: "all repeats of a request ask for as many numbers as the first",
    edits: [
      edit(
        "acquire.ts",
        "    want: isContended ? blockFor(contention, options) : 1,\n",
        "    get want() {\n      return contention.waitingFor(key) > 0 ? blockFor(contention, options) : 1;\n    },\n",
      ),
      edit(
        "acquire.ts",
        "  const isContended = turn?.from !== undefined || contention.waitingFor(key) > 0;\n",
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
        "acquire.ts",
        "turn?.from !== undefined || contention.waitingFor(key) > 0;",
        "turn?.from !== undefined || contention.waitingFor(key) >= 0;",
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
    name: "passing-on-without-an-answer-is-forgotten",
    breaks: "release is re-sent until the TTL has passed (3): also of what was to be passed on",
    edits: [
      redis(
        "giving-up",
        "          release(patientUntil).then(resolve, reject);",
        "          void [release, reject];\n          resolve(true);",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/passing-on",
        "it was lost where most nodes had forgotten it, and who comes next",
      ),
    ],
  },
  {
    name: "passing-on-behind-the-release-says-lost",
    breaks:
      "a release whose repeat says not-held counts as released (3): also where the passing on comes behind it",
    edits: [redis("giving-up", "if (released || !isAlone) {", "if (released || isDone) {")],
    killers: [byRules("drivers/redis/quorum/passing-on", "behind its release, whose answers were lost")],
  },
  {
    name: "passing-on-of-an-earlier-bid-is-forgotten",
    breaks:
      "a release whose reply was lost and whose repeat says not-held counts as released (3): also by another bid",
    edits: [redis("quorum/ballot", "bid.passing?.attemptsOn(voter) ?? new Attempts()", "new Attempts()")],
    killers: [byRules("drivers/redis/quorum/passing-on", "it was ours where the answer of a node was lost")],
  },
  {
    name: "passing-on-that-the-client-repeats-says-lost",
    breaks:
      "a release whose reply was lost and whose repeat says not-held counts as released (3): of the client library's too",
    edits: [
      redis(
        "quorum/ballot",
        "this.attempts.isRepeat || !isSteady, isPlain",
        "this.attempts.isRepeat || (isSteady && answer.length === 0), isPlain",
      ),
    ],
    killers: [byRules("drivers/redis/quorum/passing-on", "it was ours where the client library")],
  },
  {
    name: "what-was-lost-counts-as-passed-on",
    breaks: "not ours: lost (2), unless something of ours may have released it",
    edits: [redis("quorum/passing-on", "(voter) => this.#partOf(voter).mayHaveGivenUp", "() => true")],
    killers: [byRules("drivers/redis/quorum/passing-on", "it was lost where most nodes had forgotten it")],
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
    name: "silent-node-keeps-what-was-passed-on",
    breaks: "release and cancel go to all nodes (4.7): also of what was passed on",
    edits: [
      redis(
        "quorum/passing-on",
        "if (!this.#done.has(ballot) && this.#hold.mayBeOn(voter)) {",
        'if (!this.#done.has(ballot) && this.#hold.isOver && this.#hold.token === "") {',
      ),
    ],
    killers: [
      byRules("drivers/redis/quorum/leftovers", "a grant that was passed on is given back on a silent node"),
    ],
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
];
