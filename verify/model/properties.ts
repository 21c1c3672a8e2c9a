/** What must hold in every state, by the number that a state keeps of the one that is broken, from 1. */
export const invariants: readonly string[] = [
  "exclusion: two hold the lock, both within their validity",
  "fencing: two grants have one token",
  "fencing: the token is not larger than one that was told before its attempt began",
  "fencing: the token is not larger than one of a grant that was complete before",
  "extension: a lease was prolonged although another, which began after its last confirmation, has had the lock since",
];

export const exclusion = 1;
export const uniqueness = 2;
export const realTimeOrder = 3;
export const completionOrder = 4;
export const continuity = 5;
