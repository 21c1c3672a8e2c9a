/** A failure that users of lock libraries have met, and the test that shows that ours does not fail so. */
export interface Failure {
  readonly name: FailureName;
  readonly title: string;
  /** What happened to others. */
  readonly fault: string;
  /** The rule that a library is judged by. */
  readonly expectation: string;
  readonly tests: TestReference;
}

/** A test of ours, by its file below `packages/holdfast/test` and its title, or the beginning of it. */
interface TestReference {
  readonly file: string;
  readonly test: string;
}

export type FailureName =
  | "lost-reply"
  | "blocked-loop"
  | "frozen-server"
  | "transient-error"
  | "tie"
  | "near-nodes"
  | "minority-away"
  | "release-after-expiry"
  | "timed-out-acquire"
  | "tiny-ttl"
  | "unknown-holder"
  | "database-and-prefix"
  | "semaphore-clocks"
  | "aborted-waiters"
  | "dead-waiter"
  | "dead-shard";

export const failures: readonly Failure[] = [
  {
    name: "lost-reply",
    title: "a lost reply on a free lock",
    fault: "The grant was made, its reply was lost, and the caller waited for its own lock until it expired.",
    expectation:
      "Who wants a free lock, and whose first reply is lost with its connection, has it within 1 s.",
    tests: {
      file: "integration/single/grants-to-nobody.test.ts",
      test: "a reply lost on a free lock: the next try of %s, with a client that %s, is the same grant",
    },
  },
  {
    name: "blocked-loop",
    title: "the event loop blocked past the TTL",
    fault: "Work that went on after a long garbage collection was still told that the lock was its own.",
    expectation: "The first check after the block says that the lease is over, before any timer has run.",
    tests: {
      file: "integration/single/loss.test.ts",
      test: "with the event loop blocked past the TTL throwIfLost throws before any timer ran",
    },
  },
  {
    name: "frozen-server",
    title: "the server frozen under a lease",
    fault: "Renewal hung with the server, and the holder was told of the loss seconds after it.",
    expectation: "The holder is told at the latest 0.3 s after the end of its TTL, whatever hangs.",
    tests: {
      file: "integration/single/loss.test.ts",
      test: "under a frozen server aborts its signal at validUntil",
    },
  },
  {
    name: "transient-error",
    title: "one transient error at renewal",
    fault: "One error answer ended the lease though it had time left, or ended the process.",
    expectation:
      "A single error answer at renewal costs nobody the lease: it is renewed while there is time.",
    tests: {
      file: "integration/single/renewal-error.test.ts",
      test: "one transient error at renewal loses nothing",
    },
  },
  {
    name: "tie",
    title: "a tie among an even number of nodes",
    fault: "With as many votes for as against, acquire and release never ended.",
    expectation:
      "Where two of four nodes refuse, acquire ends within its wait and 3 s; where two have lost the lock, so does release.",
    tests: {
      file: "integration/redlock/tie.test.ts",
      test: "two of four nodes that refuse",
    },
  },
  {
    name: "near-nodes",
    title: "several contenders near different nodes",
    fault:
      "Each got the vote of its nearest node, kept it and retried: a free lock was nobody's for seconds.",
    expectation:
      "Of three contenders for a free lock somebody has it within their 2 s of waiting, in every round.",
    tests: {
      file: "integration/redlock/contention.test.ts",
      test: "${contenders} at the same moment, each first at another node, all get it in turn",
    },
  },
  {
    name: "minority-away",
    title: "one of three nodes frozen or down",
    fault: "Every acquire and every release waited for the node that does not answer, for 5 to 15 s.",
    expectation: "With a majority up, an acquire and its release take no more than 2 s together.",
    tests: {
      file: "integration/redlock/minority.test.ts",
      test: "$how: of $count nodes those at $away are not waited for, and take part again afterwards",
    },
  },
  {
    name: "release-after-expiry",
    title: "release after expiry",
    fault: "A release of a lease that was gone took seconds, said nothing, or replaced the work's own error.",
    expectation:
      "Release ends within 1 s, leaves the lock of another alone, and tells the loss; so does the callback form, except that an error of the work comes first.",
    tests: {
      file: "integration/single/release-after-expiry.test.ts",
      test: "release after expiry",
    },
  },
  {
    name: "timed-out-acquire",
    title: "an acquire that timed out",
    fault: "The caller gave up, the grant was made all the same, and nobody had the lock for its whole TTL.",
    expectation: "Within 3 s after the network is well again the lock is free, though its TTL is 20 s.",
    tests: {
      file: "integration/single/timed-out-acquire.test.ts",
      test: "an acquire that timed out leaves nothing behind",
    },
  },
  {
    name: "tiny-ttl",
    title: "a tiny TTL",
    fault: "A lease of one second was renewed in a loop without pause: over 100 000 commands in a second.",
    expectation: "A lease of 1 s that is kept costs at most 100 commands in a second, and is kept.",
    tests: {
      file: "integration/single/load.test.ts",
      test: "a TTL of 100 ms is renewed without a busy loop, and is not lost",
    },
  },
  {
    name: "unknown-holder",
    title: "the server unreachable while asking who holds",
    fault: "A lock that was held was told to be free, because the server could not be asked.",
    expectation:
      "Who asks while the server cannot be reached is told so, or nothing, but never that the lock is free.",
    tests: {
      file: "integration/single/unknown-holder.test.ts",
      test: "with the server unreachable who asks for the holder is told so",
    },
  },
  {
    name: "database-and-prefix",
    title: "the client's own database and prefix",
    fault: "Locks of a client with a database of its own landed in database 0, beside those of others.",
    expectation:
      "All keys are in the client's database and bear its prefix, and a lock of the same name elsewhere is another lock.",
    tests: {
      file: "integration/single/database-and-prefix.test.ts",
      test: "the client's own database and prefix are respected",
    },
  },
  {
    name: "semaphore-clocks",
    title: "a semaphore with clients of different TTLs and clocks",
    fault: "A client with a shorter TTL, or a clock ahead, expired the permit of another that still held it.",
    expectation:
      "Of a semaphore of one permit nobody has the second, while the library calls the first valid.",
    tests: {
      file: "integration/single/semaphore-clocks.test.ts",
      test: "a permit is its holder's, whatever TTL or clock another client has",
    },
  },
  {
    name: "aborted-waiters",
    title: "thousands of waiters aborted at once",
    fault: "Waiters could not be called off, or left timers, places and memory behind.",
    expectation:
      "2 000 waiters that are aborted at once all end within 2 s, and the freed lock is had within 1 s.",
    tests: {
      file: "drivers/redis/single/waiters.test.ts",
      test: "is forgotten, ${manyWaiters} at once ${mode} hand-over",
    },
  },
  {
    name: "dead-waiter",
    title: "a dead waiter at the head of the queue",
    fault: "A lock was passed to a waiter whose process was gone, and stayed there until it expired.",
    expectation: "When the holder releases, the next living waiter has the lock within 1 s.",
    tests: {
      file: "drivers/redis/single/waiters.test.ts",
      test: "the next is served at once when the head of the queue was killed",
    },
  },
  {
    name: "dead-shard",
    title: "ten thousand leases and one dead shard",
    fault: "Renewals stood in one line: those of a dead server kept those of the living from their turn.",
    expectation:
      "Of 5 000 leases on each of two servers, one of which dies, those of the other are all renewed.",
    tests: {
      file: "integration/cluster/dead-shard.test.ts",
      test: "one dead server of two: every lease on the other is renewed in time",
    },
  },
];

export const failureNames: readonly FailureName[] = failures.map(({ name }) => name);

export function isFailureName(name: string): name is FailureName {
  return (failureNames as readonly string[]).includes(name);
}
