/** The phases of an attempt. */
export const phases = {
  idle: 0,
  waiting: 1,
  /** The attempt has a majority and brings its nodes to one fencing number. */
  settling: 2,
  holding: 3,
  /** Released, cancelled, or lost. */
  ended: 4,
  /** The client's connections are closed: a message to the client has no receiver. */
  dead: 5,
  /** The client does nothing, but its connections stay open. */
  frozen: 6,
} as const;

/** The bytes that count how many faults of each kind may still occur. They precede the attempts. */
export const budgets = {
  losses: 1,
  duplicates: 2,
  expiries: 3,
  clientFaults: 4,
  restarts: 5,
  resends: 6,
  cancels: 7,
  extensions: 8,
  places: 9,
  breaks: 10,
  passes: 11,
  refills: 12,
} as const;

/** Requests in transit to a node, in any order, and what the attempt knows about its agreement with the node. */
export const flags = {
  acquire: 1,
  yield: 2,
  release: 4,
  agree: 8,
  extend: 64,
  refill: 128,
  /** The reply to `agree` has not arrived yet. */
  isAgreeing: 16,
  /** The attempt has sent `agree` in this round. */
  agreeSent: 32,
} as const;

/** The reply to `agree` of a node on which another attempt holds the grant. */
export const notHolder = 255;

/** The bit of a fencing number in a mask of messages. */
export function bitOf(number: number): number {
  return 1 << (number - 1);
}
