import { checkExclusion } from "./rules/exclusion.ts";
import { checkReentry } from "./rules/reentry.ts";
import { checkQuietPeriod } from "./rules/quiet-period.ts";
import { checkResidue, checkResources } from "./rules/residue.ts";
import { checkLatchCounts, checkLatches, checkQuietPeriodLatches } from "./rules/latches.ts";
import { checkMemory, checkUnhandledErrors, checkErrorCodes } from "./rules/process.ts";
import { checkLossNotices } from "./rules/loss-notice.ts";
import { checkRepeatedAttempts, checkFencingTokens } from "./rules/tokens.ts";
import { checkVotes } from "./rules/votes.ts";
import { checkWaits } from "./rules/waits.ts";
import { checkMultiLocks } from "./rules/multi-lock.ts";
import type { Rule } from "./rule.ts";

export const rules: readonly Rule[] = [
  {
    name: "exclusion",
    description:
      "While a lease is valid by its holder's clock, no other lease of its key is valid. Readers of a read-write lock may overlap. Holders of a semaphore have at most its permits.",
    check: checkExclusion,
  },
  {
    name: "votes",
    description:
      "A quorum does not count the vote of a server that restarted without its data before the quarantine ends. If the server's clock was set since, only processes that knew the former run are judged. A grant does not count a vote of a run that had ended before its request.",
    check: checkVotes,
  },
  {
    name: "multi-lock",
    description:
      "A lease of several keys holds all of them. After a break of one key the lease lasts at most a TTL.",
    check: checkMultiLocks,
  },
  {
    name: "reentry",
    description: "The holder of a reentrant lock enters again with the same token.",
    check: checkReentry,
  },
  {
    name: "tokens",
    description:
      "Fencing tokens are unique, and rise in the order of the grants. If two holders may overlap, their tokens rise if one was granted before the request of the other. Overlapping readers of a quorum may have the same token.",
    check: checkFencingTokens,
  },
  {
    name: "attempts",
    description:
      "A repeated attempt gets the grant that its process still has, with the same token. Attempts of other processes are separate.",
    check: checkRepeatedAttempts,
  },
  {
    name: "resource",
    description:
      "The resource accepts no token after a larger one, and no reader's token after a larger token of a writer. The counter that checks tokens loses no write.",
    check: checkResources,
  },
  {
    name: "count",
    description:
      "Each attempt at a latch that got a reply has counted, and no attempt counts twice, whichever process repeats it.",
    check: checkLatchCounts,
  },
  {
    name: "latch",
    description:
      "No waiter of a latch returns before the last count. The latch stays open until its TTL has passed, and then reports its expiry to objects that knew the latch. In a quiet period every waiter returns.",
    check: checkLatches,
  },
  {
    name: "waits",
    description: "Every request and every release is settled in time, unless its process was killed.",
    check: checkWaits,
  },
  {
    name: "loss-notice",
    description:
      "Every holder gets a notice of its loss when the validity ends. A stalled process gets the notice first when the process runs again.",
    check: checkLossNotices,
  },
  {
    name: "quiet-period",
    description:
      "After the last fault of a storm every process gets every lock within the bound. A latch that all processes count down releases all waiters.",
    check: (run) => [...checkQuietPeriod(run), ...checkQuietPeriodLatches(run)],
  },
  {
    name: "residue",
    description:
      "When all processes are at rest, the servers have only fencing counters, and client records and latches with a TTL.",
    check: checkResidue,
  },
  { name: "memory", description: "The memory of a process does not grow.", check: checkMemory },
  {
    name: "unhandled-error",
    description: "No rejection is unhandled, no process crashes, and no error is unknown.",
    check: (run) => [...checkUnhandledErrors(run), ...checkErrorCodes(run)],
  },
];
