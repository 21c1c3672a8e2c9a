import { clocks, extension, fencing, turns, type Configuration } from "./configurations.ts";

/** A protocol with one rule broken, within bounds in which that shows. */
export interface Mutant {
  readonly name: string;
  /** What is broken. */
  readonly breaks: string;
  /** What the promise that falls begins with. */
  readonly falls: "exclusion" | "fencing" | "extension" | "progress";
  readonly configuration: Configuration;
}

function mutant(breaks: string, falls: Mutant["falls"], configuration: Configuration): Mutant {
  return { name: configuration.name, breaks, falls, configuration };
}

/** Two of three nodes answer: a majority needs both. */
const minorityDown = { nodes: 2, silentNodes: 1 };

export const mutants: readonly Mutant[] = [
  mutant(
    "an inquiry is not answered by a yield",
    "progress",
    turns("no-yield", "", { ...minorityDown, mutant: "no-yield" }),
  ),
  mutant(
    "who has a majority yields",
    "exclusion",
    turns("yield-after-election", "", { mutant: "yield-after-election" }),
  ),
  mutant(
    "a node that executes a yield does not compare its number",
    "exclusion",
    turns("yield-without-number", "", {
      restarts: 1,
      resends: 1,
      duplicates: 1,
      mutant: "yield-without-number",
    }),
  ),
  mutant(
    "a vote that was given back counts when its reply comes late",
    "exclusion",
    turns("yielded-vote-counts", "", { resends: 1, mutant: "yielded-vote-counts" }),
  ),
  mutant(
    "a yield that was lost is repeated as acquire",
    "progress",
    turns("yield-not-repeated", "", { ...minorityDown, losses: 1, mutant: "yield-not-repeated" }),
  ),
  mutant(
    "of equal tickets none comes first",
    "progress",
    turns("no-tie-break", "", { ...minorityDown, equalTickets: true, mutant: "no-tie-break" }),
  ),
  mutant(
    "a majority of the nodes that vote is enough",
    "exclusion",
    turns("majority-of-answers", "", { restarts: 2, mutant: "majority-of-answers" }),
  ),
  mutant(
    "validity counts from the reply, not from the request",
    "exclusion",
    turns("validity-from-reply", "", { expiries: 1, mutant: "validity-from-reply" }),
  ),
  mutant(
    "a node votes as soon as it has restarted",
    "exclusion",
    turns("no-restart-guard", "", { restarts: 1, mutant: "no-restart-guard" }),
  ),
  mutant(
    "release does not compare the holder",
    "exclusion",
    turns("release-without-comparing", "", {
      ...minorityDown,
      attempts: 3,
      cancels: 1,
      mutant: "release-without-comparing",
    }),
  ),
  mutant(
    "a grant for an attempt that is over is not given back",
    "progress",
    turns("late-grant-kept", "", { cancels: 1, mutant: "late-grant-kept" }),
  ),
  mutant(
    "who gives up does not release",
    "progress",
    turns("no-release-of-losers", "", { ...minorityDown, cancels: 1, mutant: "no-release-of-losers" }),
  ),
  mutant(
    "a waiter never asks again",
    "progress",
    turns("waiter-without-resend", "", { ...minorityDown, losses: 1, mutant: "waiter-without-resend" }),
  ),
  mutant(
    "extend makes a grant anew where there is none",
    "progress",
    turns("extend-re-creates", "", { extensions: 1, mutant: "extend-re-creates" }),
  ),
  mutant(
    "with queues: the largest number is taken without agreement",
    "fencing",
    turns("one-round-without-agreement", "", {
      numbers: "agreed",
      candidates: 2,
      mutant: "one-round-without-agreement",
    }),
  ),
  mutant(
    "a grant does not raise the number",
    "fencing",
    fencing("no-increment", "", { mutant: "no-increment" }),
  ),
  mutant(
    "the largest number is taken without a second round",
    "fencing",
    fencing("no-second-round", "", { mutant: "no-second-round" }),
  ),
  mutant(
    "an acknowledgement counts whatever number it carries",
    "fencing",
    fencing("acknowledgement-without-value", "", { candidates: 1, mutant: "acknowledgement-without-value" }),
  ),
  mutant(
    "agree does not compare the holder",
    "fencing",
    fencing("agree-without-comparing", "", { mutant: "agree-without-comparing" }),
  ),
  mutant(
    "a node that has forgotten its numbers votes at once",
    "exclusion",
    fencing("no-restart-guard-for-numbers", "", {
      isTimed: true,
      restarts: 1,
      candidates: "following",
      mutant: "no-restart-guard",
    }),
  ),
  mutant(
    "a node that is filled again counts at once",
    "extension",
    extension("refill-counts-at-once", "", { mutant: "refill-counts-at-once" }),
  ),
  mutant(
    "a node that gave the lock to another meanwhile counts",
    "extension",
    extension("break-unnoticed", "", { mutant: "break-unnoticed" }),
  ),
  mutant(
    "an extension needs a majority of the answers only",
    "extension",
    extension("majority-of-answers-extends", "", { mutant: "majority-of-answers" }),
  ),
  mutant(
    "a grant over an unreleased holder counts at once",
    "exclusion",
    clocks("no-wait", "", { mutant: "no-wait" }),
  ),
  mutant(
    "the wait after an unreleased holder is D",
    "exclusion",
    clocks("wait-of-1-d", "", { mutant: "wait-of-1-d" }),
  ),
  mutant(
    "the wait after an unreleased holder is 2 × D",
    "exclusion",
    clocks("wait-of-2-d", "", { mutant: "wait-of-2-d" }),
  ),
  mutant(
    "a node votes although its clock is off",
    "exclusion",
    clocks("off-clocks-vote", "", { mutant: "off-clocks-vote" }),
  ),
  mutant(
    "the release of a later grant lowers the wait",
    "exclusion",
    clocks("release-lowers-wait", "", { attempts: 3, lasts: 1, mutant: "release-lowers-wait" }),
  ),
  mutant(
    "a repeat does not tell what is left of the wait",
    "exclusion",
    clocks("repeat-without-wait", "", { losses: 1, lasts: 1, mutant: "repeat-without-wait" }),
  ),
  mutant(
    "a request behind its latest time ends what is remembered of its vote",
    "exclusion",
    clocks("late-request-ends-memory", "", { late: 1, lasts: 2, mutant: "late-request-ends-memory" }),
  ),
];
