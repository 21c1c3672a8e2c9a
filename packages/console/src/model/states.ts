/**
 * The states of a lock in words, for the console and for `holdfast top`. `held long`: renewed in time, and held longer than usual, or for long
 * while others wait. `late`: not renewed in time. `foreign`: the holder is not a Holdfast client. `no expiry`: only a release or a break ends
 * the hold.
 */
export const lockStates = ["held", "held long", "late", "foreign", "no expiry", "latch", "free"] as const;
export type StateWord = (typeof lockStates)[number];

/** The meaning of each state, for people. */
export const stateTitles: Readonly<Record<StateWord, string>> = {
  held: "Held, and renewed in time",
  "held long":
    "The holder renews in time, and holds the lock longer than usual, or for long while others wait",
  late: "The holder has not renewed in time",
  foreign: "The holder is not a Holdfast client",
  "no expiry": "Only a release or a break ends the hold",
  latch: "A latch has no holder",
  free: "No holder",
};

/** The facts of a lock that decide its state. */
interface StateFacts {
  readonly holders: readonly { readonly owner: string }[];
  readonly remaining?: number;
  readonly remainingMs: number | null;
}

/** Healthy clients renew after a third of the TTL. A lease with less than this part of its TTL is late. */
const renewedFraction = 0.5;

/** @param ttlMs a lower bound of the TTL: the longest remaining time of the grant that was seen */
export function stateOf(
  { holders, remaining, remainingMs }: StateFacts,
  ttlMs: number | undefined,
): Exclude<StateWord, "held long"> {
  if (remaining !== undefined) return "latch";
  if (holders.length === 0) return "free";
  if (holders.some(({ owner }) => owner === "unknown")) return "foreign";
  if (remainingMs === null) return "no expiry";
  return remainingMs < (ttlMs ?? 0) * renewedFraction ? "late" : "held";
}

/** Whether the lock may never be released without help: not renewed, of an unknown holder, or without an expiry. */
export function isStaleState(state: StateWord): boolean {
  return state === "late" || state === "foreign" || state === "no expiry";
}
