/** The invariants of every state. A state stores the number of the violated one, from 1. */
export const invariants: readonly string[] = [
  "exclusion: two attempts hold the lock within their validity",
  "fencing: two grants have the same token",
  "fencing: the token is not larger than one that was reported before its attempt began",
  "fencing: the token is not larger than the token of a grant that was complete before",
  "extension: a lease was extended although an attempt that began after its last confirmation has held the lock since",
];

export const exclusion = 1;
export const uniqueness = 2;
export const realTimeOrder = 3;
export const completionOrder = 4;
export const continuity = 5;
