import type { Moment } from "./history.ts";
import { excludes } from "./rules/exclusion.ts";
import { holderEntersAgain } from "./rules/reentry.ts";
import { everyoneInPeace } from "./rules/quiet-period.ts";
import { nothingLeft, resourceKeptItsWord } from "./rules/residue.ts";
import { attemptsCountOnce, latchesKeepTheirWord, latchesOpenInPeace } from "./rules/latches.ts";
import { memoryStays, nothingUnheard, onlyKnownErrors } from "./rules/process.ts";
import { lossIsTold } from "./rules/loss-notice.ts";
import { repeatsShareTheGrant, tokensRise } from "./rules/tokens.ts";
import { votesMayCount } from "./rules/votes.ts";
import { everyAskIsSettled } from "./rules/waits.ts";
import { allOrNone } from "./rules/multi-lock.ts";
import type { RunStory } from "./attempts.ts";

/** What must not be, and when it was. */
export interface Violation {
  readonly rule: RuleName;
  readonly at: Moment;
  readonly key: string | null;
  readonly text: string;
  /** What helps to explain it, a line each. */
  readonly evidence?: readonly string[];
}

export type RuleName =
  | "exclusion"
  | "votes"
  | "whole"
  | "nested"
  | "tokens"
  | "attempts"
  | "resource"
  | "count"
  | "latch"
  | "waits"
  | "told"
  | "peace"
  | "left"
  | "memory"
  | "unheard";

export interface Rule {
  readonly name: RuleName;
  readonly says: string;
  readonly check: (run: RunStory) => Violation[];
}

export const rules: readonly Rule[] = [
  {
    name: "exclusion",
    says: "While a lease is valid by its holder's clock, nobody else has one for that key; of a read-write lock readers have none beside a writer, and of a semaphore all have no more permits than its limit.",
    check: excludes,
  },
  {
    name: "votes",
    says: "No grant and no extension of a quorum counts the vote of a server that was restarted without its data before the guard's time is over (where its clock was set meanwhile: in a process that had known the server before), and no grant that of a run that had ended before it was asked for.",
    check: votesMayCount,
  },
  {
    name: "whole",
    says: "A lease of several keys has them all; when one of them is broken it lasts no longer than a TTL.",
    check: allOrNone,
  },
  {
    name: "nested",
    says: "Who holds a reentrant lock is let in again, with the same token.",
    check: holderEntersAgain,
  },
  {
    name: "tokens",
    says: "Fencing tokens are unique, and rise in the order of the grants; those that may be beside each other have rising ones where one was granted before the other was asked for, and readers that overlap on a quorum may have the same.",
    check: tokensRise,
  },
  {
    name: "attempts",
    says: "A repeated attempt gets the grant that its process still has for it, with the same token; another process is a stranger.",
    check: repeatsShareTheGrant,
  },
  {
    name: "resource",
    says: "The resource accepts no token after a larger one (of a reader: of a writer), and its counter that checks them loses nothing.",
    check: resourceKeptItsWord,
  },
  {
    name: "count",
    says: "Of a latch each attempt that was answered has counted, and none twice, whoever repeats it.",
    check: attemptsCountOnce,
  },
  {
    name: "latch",
    says: "A latch lets nobody go before its last count, stays open until its TTL is over, and is then over for who knew it; in peace it lets everybody go.",
    check: latchesKeepTheirWord,
  },
  {
    name: "waits",
    says: "Every ask and every release is settled in time, or its process was killed.",
    check: everyAskIsSettled,
  },
  {
    name: "told",
    says: "Every holder is told of a loss when its validity ends, or as the first thing when its process runs again.",
    check: lossIsTold,
  },
  {
    name: "peace",
    says: "After the last fault of a storm every process gets every lock within the bound, and a latch that all count down lets all go.",
    check: (run) => [...everyoneInPeace(run), ...latchesOpenInPeace(run)],
  },
  {
    name: "left",
    says: "When all came to rest nothing is left on the servers but fencing counters, clients and latches, with a TTL.",
    check: nothingLeft,
  },
  { name: "memory", says: "The memory of a process does not grow.", check: memoryStays },
  {
    name: "unheard",
    says: "No rejection is unhandled, no process ends by itself, no error is unknown.",
    check: (run) => [...nothingUnheard(run), ...onlyKnownErrors(run)],
  },
];
