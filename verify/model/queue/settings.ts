/** A rule of the protocol that is left out, or wrong. */
type QueueMutant =
  | "no-yield"
  | "yield-after-election"
  | "yield-without-number"
  | "yielded-vote-counts"
  | "yield-not-repeated"
  | "no-tie-break"
  | "majority-of-answers"
  | "validity-from-reply"
  | "no-restart-guard"
  | "release-without-comparing"
  | "late-grant-kept"
  | "waiter-without-resend"
  | "one-round-without-agreement"
  | "no-release-of-losers"
  | "extend-re-creates";

/** What may happen, and how often. What has no bound here may happen at any time and as often as it can. */
export interface QueueSettings {
  /** Nodes that answer. */
  readonly nodes: number;
  /** Nodes that never do: a majority is one of all. */
  readonly silentNodes: number;
  /** Requests for the lock, in the order of their tickets. They start in any order, at any time, each for itself. */
  readonly attempts: number;
  /** All tickets are the same: only the tie-break tells who is first. */
  readonly equalTickets: boolean;
  /** Questions asked again although nothing is known to be lost. When all is quiet everybody asks again, without bound. */
  readonly resends: number;
  /** Requests, replies and messages that are lost. */
  readonly losses: number;
  /** Requests that a node executes once more. */
  readonly duplicates: number;
  /** Grants that end by their TTL although their client lives. */
  readonly expiries: number;
  /** Clients that die (their connections with them) or freeze (their connections stay). */
  readonly clientFaults: number;
  /** Nodes that restart and have forgotten everything. */
  readonly restarts: number;
  /** Waiters that give up. */
  readonly cancels: number;
  /** Places that a node takes out of its queue: their time is over, or nobody hears what would be told to them. */
  readonly places: number;
  /** Grants that an operator ends at a node. */
  readonly breaks: number;
  /** Nodes that are found free in passing, by a try or by an operation that comes to nothing: they serve the first in their queue. */
  readonly passes: number;
  /** Nodes that a holder fills again, as they lost its grant. */
  readonly refills: number;
  /** How often holders ask to prolong. It changes nothing where all is well, but may come late. */
  readonly extensions: number;
  /**
   * "agreed": the fencing numbers with their rounds, as the code has them. "later": who has a majority may need another round, at
   * the model's choice. "at once": a majority is enough.
   */
  readonly numbers: "agreed" | "later" | "at once";
  /** With "agreed": the candidates that clients may send are 1 up to this. */
  readonly proposals: number;
  readonly mutant: QueueMutant | undefined;
}

export const faultFreeQueue: QueueSettings = {
  nodes: 3,
  silentNodes: 0,
  attempts: 2,
  equalTickets: false,
  resends: 0,
  losses: 0,
  duplicates: 0,
  expiries: 0,
  clientFaults: 0,
  restarts: 0,
  cancels: 0,
  places: 0,
  breaks: 0,
  passes: 0,
  refills: 0,
  extensions: 0,
  numbers: "at once",
  proposals: 1,
  mutant: undefined,
};
