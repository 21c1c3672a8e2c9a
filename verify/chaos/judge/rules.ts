import type { Instant } from "./history.ts";
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
import type { RunHistory } from "./attempts.ts";

/** What must not be, and when it was. */
export interface Violation {
  readonly rule: RuleName;
  readonly at: Instant;
  readonly key: string | null;
  readonly text: string;
  /** What helps to explain it, a line each. */
  readonly evidence?: readonly string[];
}

export type RuleName =
  | "exclusion"
  | "votes"
  | "multi-lock"
  | "reentry"
  | "tokens"
  | "attempts"
  | "resource"
  | "count"
  | "latch"
  | "waits"
  | "loss-notice"
  | "quiet-period"
  | "residue"
  | "memory"
  | "unhandled-error";

export interface Rule {
  readonly name: RuleName;
  readonly description: string;
  readonly check: (run: RunHistory) => Violation[];
}

export const rules: readonly Rule[] = [
  {
    name: "exclusion",
    description:
      "While a lease is valid by its holder's clock, nobody else has one for that key; of a read-write lock readers have none beside a writer, and of a semaphore all have no more permits than its limit.",
    check: checkExclusion,
  },
  {
    name: "votes",
    description:
      "No grant and no extension of a quorum counts the vote of a server that was restarted without its data before the guard's time is over (where its clock was set meanwhile: in a process that had known the server before), and no grant that of a run that had ended before it was asked for.",
    check: checkVotes,
  },
  {
    name: "multi-lock",
    description:
      "A lease of several keys has them all; when one of them is broken it lasts no longer than a TTL.",
    check: checkMultiLocks,
  },
  {
    name: "reentry",
    description: "Who holds a reentrant lock is let in again, with the same token.",
    check: checkReentry,
  },
  {
    name: "tokens",
    description:
      "Fencing tokens are unique, and rise in the order of the grants; those that may be beside each other have rising ones where one was granted before the other was asked for, and readers that overlap on a quorum may have the same.",
    check: checkFencingTokens,
  },
  {
    name: "attempts",
    description:
      "A repeated attempt gets the grant that its process still has for it, with the same token; another process is a stranger.",
    check: checkRepeatedAttempts,
  },
  {
    name: "resource",
    description:
      "The resource accepts no token after a larger one (of a reader: of a writer), and its counter that checks them loses nothing.",
    check: checkResources,
  },
  {
    name: "count",
    description: "Of a latch each attempt that was answered has counted, and none twice, whoever repeats it.",
    check: checkLatchCounts,
  },
  {
    name: "latch",
    description:
      "A latch lets nobody go before its last count, stays open until its TTL is over, and is then over for who knew it; in peace it lets everybody go.",
    check: checkLatches,
  },
  {
    name: "waits",
    description: "Every ask and every release is settled in time, or its process was killed.",
    check: checkWaits,
  },
  {
    name: "loss-notice",
    description:
      "Every holder is told of a loss when its validity ends, or as the first thing when its process runs again.",
    check: checkLossNotices,
  },
  {
    name: "quiet-period",
    description:
      "After the last fault of a storm every process gets every lock within the bound, and a latch that all count down lets all go.",
    check: (run) => [...checkQuietPeriod(run), ...checkQuietPeriodLatches(run)],
  },
  {
    name: "residue",
    description:
      "When all came to rest nothing is left on the servers but fencing counters, clients and latches, with a TTL.",
    check: checkResidue,
  },
  { name: "memory", description: "The memory of a process does not grow.", check: checkMemory },
  {
    name: "unhandled-error",
    description: "No rejection is unhandled, no process ends by itself, no error is unknown.",
    check: (run) => [...checkUnhandledErrors(run), ...checkErrorCodes(run)],
  },
];
