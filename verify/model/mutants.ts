import { clocks, extension, fencing, queue, type Configuration } from "./configurations.ts";

/** A protocol with one broken rule, and bounds in which the violation occurs. */
export interface Mutant {
  readonly name: string;
  /** The broken rule, as a statement about the mutant. */
  readonly breaks: string;
  /** The start of the violated invariant's text. */
  readonly violatedInvariant: "exclusion" | "fencing" | "extension" | "progress";
  readonly configuration: Configuration;
}

function mutant(
  breaks: string,
  violatedInvariant: Mutant["violatedInvariant"],
  configuration: Configuration,
): Mutant {
  return { name: configuration.name, breaks, violatedInvariant, configuration };
}

/** Two of three nodes reply, so a majority needs both. */
const minorityUnavailable = { nodes: 2, silentNodes: 1 };

export const mutants: readonly Mutant[] = [
  mutant(
    "an inquiry is not answered by a yield",
    "progress",
    queue("no-yield", "", { ...minorityUnavailable, mutant: "no-yield" }),
  ),
  mutant(
    "a client with a majority yields",
    "exclusion",
    queue("yield-after-election", "", { mutant: "yield-after-election" }),
  ),
  mutant(
    "a node that executes a yield does not compare its number",
    "exclusion",
    queue("yield-without-number", "", {
      restarts: 1,
      resends: 1,
      duplicates: 1,
      mutant: "yield-without-number",
    }),
  ),
  mutant(
    "a yielded vote counts if its reply is late",
    "exclusion",
    queue("yielded-vote-counts", "", { resends: 1, mutant: "yielded-vote-counts" }),
  ),
  mutant(
    "a lost yield is repeated as acquire",
    "progress",
    queue("yield-not-repeated", "", { ...minorityUnavailable, losses: 1, mutant: "yield-not-repeated" }),
  ),
  mutant(
    "equal tickets have no order",
    "progress",
    queue("no-tie-break", "", { ...minorityUnavailable, equalTickets: true, mutant: "no-tie-break" }),
  ),
  mutant(
    "a majority of the nodes that vote is enough",
    "exclusion",
    queue("majority-of-answers", "", { restarts: 2, mutant: "majority-of-answers" }),
  ),
  mutant(
    "validity counts from the reply, not from the request",
    "exclusion",
    queue("validity-from-reply", "", { expiries: 1, mutant: "validity-from-reply" }),
  ),
  mutant(
    "a node votes as soon as it has restarted",
    "exclusion",
    queue("no-restart-guard", "", { restarts: 1, mutant: "no-restart-guard" }),
  ),
  mutant(
    "release does not compare the holder",
    "exclusion",
    queue("release-without-comparing", "", {
      ...minorityUnavailable,
      attempts: 3,
      cancels: 1,
      mutant: "release-without-comparing",
    }),
  ),
  mutant(
    "a grant for an ended attempt is not released",
    "progress",
    queue("late-grant-kept", "", { cancels: 1, mutant: "late-grant-kept" }),
  ),
  mutant(
    "an abandoned request is not released",
    "progress",
    queue("no-release-of-losers", "", { ...minorityUnavailable, cancels: 1, mutant: "no-release-of-losers" }),
  ),
  mutant(
    "a waiter never polls",
    "progress",
    queue("waiter-without-resend", "", {
      ...minorityUnavailable,
      losses: 1,
      mutant: "waiter-without-resend",
    }),
  ),
  mutant(
    "extend creates a missing grant",
    "progress",
    queue("extend-re-creates", "", { extensions: 1, mutant: "extend-re-creates" }),
  ),
  mutant(
    "with queues: the largest number is used without agreement",
    "fencing",
    queue("one-round-without-agreement", "", {
      numbers: "agreed",
      proposals: 2,
      mutant: "one-round-without-agreement",
    }),
  ),
  mutant(
    "a grant does not raise the number",
    "fencing",
    fencing("no-increment", "", { mutant: "no-increment" }),
  ),
  mutant(
    "the largest number is used without a second round",
    "fencing",
    fencing("no-second-round", "", { mutant: "no-second-round" }),
  ),
  mutant(
    "an acknowledgement counts with any number",
    "fencing",
    fencing("acknowledgement-without-value", "", { proposals: 1, mutant: "acknowledgement-without-value" }),
  ),
  mutant(
    "agree does not compare the holder",
    "fencing",
    fencing("agree-without-comparing", "", { mutant: "agree-without-comparing" }),
  ),
  mutant(
    "a node that lost its numbers votes at once",
    "exclusion",
    fencing("no-restart-guard-for-numbers", "", {
      isTimed: true,
      restarts: 1,
      proposals: "following",
      mutant: "no-restart-guard",
    }),
  ),
  mutant(
    "a refilled node counts at once",
    "extension",
    extension("refill-counts-at-once", "", { mutant: "refill-counts-at-once" }),
  ),
  mutant(
    "a node that granted to another client in between counts",
    "extension",
    extension("break-unnoticed", "", { mutant: "break-unnoticed" }),
  ),
  mutant(
    "an extension needs only a majority of the replies",
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
    "a repeat does not report the rest of the wait",
    "exclusion",
    clocks("repeat-without-wait", "", { losses: 1, lasts: 1, mutant: "repeat-without-wait" }),
  ),
  mutant(
    "a request after its latest time deletes the remembered vote",
    "exclusion",
    clocks("late-request-ends-memory", "", { late: 1, lasts: 2, mutant: "late-request-ends-memory" }),
  ),
];
