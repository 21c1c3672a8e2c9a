/** A rule of the protocol that is left out or wrong. */
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

/** The steps that may happen, and how often. Steps without a bound here may happen at any time and without limit. */
export interface QueueSettings {
  /** Nodes that reply. */
  readonly nodes: number;
  /** Nodes that never reply. A majority is a majority of all nodes. */
  readonly silentNodes: number;
  /** Requests for the lock, in the order of their tickets. Each may start at any time. */
  readonly attempts: number;
  /** Whether all tickets are equal, so that only the tie-break decides the order. */
  readonly equalTickets: boolean;
  /** Repeats of requests without a lost message. When no message is in transit, every waiter polls, without a bound. */
  readonly resends: number;
  /** Lost requests, replies and notifications. */
  readonly losses: number;
  /** Requests that a node executes twice. */
  readonly duplicates: number;
  /** Grants that expire by their TTL while their client lives. */
  readonly expiries: number;
  /** Clients that crash, which closes their connections, or freeze, which leaves them open. */
  readonly clientFaults: number;
  /** Nodes that restart without their data. */
  readonly restarts: number;
  /** Waiters that abandon their request. */
  readonly cancels: number;
  /** Queue entries that a node drops, because they expired, or because the client is not subscribed. */
  readonly places: number;
  /** Grants that an operator breaks at a node. */
  readonly breaks: number;
  /** Operations without an effect of their own that find a node free. The node then grants to the first waiter. */
  readonly passes: number;
  /** Nodes that lost a grant, and that its holder refills. */
  readonly refills: number;
  /** How often holders extend. An extension has no effect on a healthy lease, but it may arrive late. */
  readonly extensions: number;
  /**
   * Whether a majority needs one fencing number. With "agreed" numbers have rounds, as in the code. With "later" an attempt may need another
   * round, by a choice of the model. With "at once" a majority is enough.
   */
  readonly numbers: "agreed" | "later" | "at once";
  /** With "agreed" clients may send candidates from 1 to this number. */
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
