/** A failure that users of lock libraries have met, and the test that shows that Holdfast does not have it. */
export interface Failure {
  readonly name: FailureName;
  readonly title: string;
  /** The effect in other libraries. */
  readonly fault: string;
  /** The rule by which a library is judged. */
  readonly expectation: string;
  readonly tests: TestReference;
}

/** A test of Holdfast: its file below `packages/holdfast/test`, and its title or the start of its title. */
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
      "If the first reply for a free lock is lost with its connection, the caller has the lock within 1 s.",
    tests: {
      file: "integration/single/grants-to-nobody.test.ts",
      test: "a reply lost on a free lock: the next try of %s, with a client that %s, is the same grant",
    },
  },
  {
    name: "blocked-loop",
    title: "the event loop blocked past the TTL",
    fault:
      "After a long garbage collection the work continued, and the library still reported the lock as held.",
    expectation: "The first check after the block reports the loss, before any timer has run.",
    tests: {
      file: "integration/single/loss.test.ts",
      test: "with the event loop blocked past the TTL throwIfLost throws before any timer ran",
    },
  },
  {
    name: "frozen-server",
    title: "the server frozen under a lease",
    fault: "Renewal hung with the server, and the loss was reported seconds late.",
    expectation: "The loss is reported at most 0.3 s after the end of the TTL, whatever hangs.",
    tests: {
      file: "integration/single/loss.test.ts",
      test: "under a frozen server aborts its signal at validUntil",
    },
  },
  {
    name: "transient-error",
    title: "one transient error at renewal",
    fault: "One error reply ended the lease before its TTL, or ended the process.",
    expectation: "A single error reply at renewal does not end the lease: it is renewed within its TTL.",
    tests: {
      file: "integration/single/renewal-error.test.ts",
      test: "one transient error at renewal loses nothing",
    },
  },
  {
    name: "tie",
    title: "a tie among an even number of nodes",
    fault: "With equal numbers of votes for and against, acquire and release never ended.",
    expectation:
      "If two of four nodes refuse, acquire ends within its wait and 3 s. If two nodes have lost the lock, release ends within the same time.",
    tests: {
      file: "integration/redlock/tie.test.ts",
      test: "two of four nodes that refuse",
    },
  },
  {
    name: "near-nodes",
    title: "several contenders near different nodes",
    fault:
      "Each contender got the vote of its nearest node, kept the vote and retried. A free lock had no holder for seconds.",
    expectation: "In every round one of three contenders has the free lock within 2 s.",
    tests: {
      file: "integration/redlock/contention.test.ts",
      test: "${contenders} at the same moment, each first at another node, all acquire it in turn",
    },
  },
  {
    name: "minority-away",
    title: "one of three nodes frozen or down",
    fault: "Every acquire and every release waited 5 to 15 s for the node without a reply.",
    expectation: "While a majority runs, an acquire and its release take at most 2 s.",
    tests: {
      file: "integration/redlock/minority.test.ts",
      test: "$how: of $count nodes those at $away are not awaited, and vote again afterwards",
    },
  },
  {
    name: "release-after-expiry",
    title: "release after expiry",
    fault:
      "A release of an expired lease took seconds, did not report the loss, or replaced the work's own error.",
    expectation:
      "Release ends within 1 s, does not affect the lock of another holder, and reports the loss. The callback form does the same, but an error of the work has priority.",
    tests: {
      file: "integration/single/release-after-expiry.test.ts",
      test: "release after expiry",
    },
  },
  {
    name: "timed-out-acquire",
    title: "an acquire that timed out",
    fault:
      "The acquire timed out, but the server granted the lock, which then had no holder for its whole TTL.",
    expectation: "The lock is free within 3 s after the network recovers, although its TTL is 20 s.",
    tests: {
      file: "integration/single/timed-out-acquire.test.ts",
      test: "an acquire that timed out leaves no residue, with a client that %s",
    },
  },
  {
    name: "tiny-ttl",
    title: "a tiny TTL",
    fault: "A lease of one second was renewed in a loop without pause: over 100 000 commands in a second.",
    expectation: "A renewed lease of 1 s costs at most 100 commands in a second, and is not lost.",
    tests: {
      file: "integration/single/load.test.ts",
      test: "a TTL of 100 ms is renewed without a busy loop, and is not lost",
    },
  },
  {
    name: "unknown-holder",
    title: "the server unreachable while asking who holds",
    fault: "A held lock was reported as free, because the server was unreachable.",
    expectation:
      "While the server is unreachable, a query reports that or gets no reply, but never reports the lock as free.",
    tests: {
      file: "integration/single/unknown-holder.test.ts",
      test: "is reported as unknown while the server is unreachable, and not as a free lock",
    },
  },
  {
    name: "database-and-prefix",
    title: "the client's own database and prefix",
    fault: "Locks of a client with a database of its own landed in database 0, beside those of others.",
    expectation:
      "All keys are in the client's database and have its prefix. A lock with the same name elsewhere is another lock.",
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
      "A semaphore of one permit has no second holder while the library reports the first one as valid.",
    tests: {
      file: "integration/single/semaphore-clocks.test.ts",
      test: "a permit stays with its holder, whatever TTL or clock another client has: one that is %s",
    },
  },
  {
    name: "aborted-waiters",
    title: "thousands of waiters aborted at once",
    fault: "Waiters could not be aborted, or left timers, queue entries and memory.",
    expectation:
      "If 2 000 waiters are aborted at once, all end within 2 s, and the freed lock is acquired within 1 s.",
    tests: {
      file: "drivers/redis/single/waiters.test.ts",
      test: "is forgotten, ${manyWaiters} at once ${mode} hand-over",
    },
  },
  {
    name: "dead-waiter",
    title: "a dead waiter at the head of the queue",
    fault: "A lock was granted to a waiter whose process had ended, and stayed held until its TTL ended.",
    expectation: "When the holder releases, the next living waiter has the lock within 1 s.",
    tests: {
      file: "drivers/redis/single/waiters.test.ts",
      test: "the next is served at once when the head of the queue was killed",
    },
  },
  {
    name: "dead-shard",
    title: "ten thousand leases and one dead shard",
    fault:
      "All renewals shared one queue, so the renewals of a dead server delayed those of the other server.",
    expectation: "Of two servers with 5 000 leases each, one dies. All leases on the other are renewed.",
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
