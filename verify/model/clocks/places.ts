/** Of an attempt: its phase, and when it asked. */
export const attemptBytes = 2 as const;
export const headBytes = 6 as const;
/** Places in the head. */
export const broken = 0 as const;
export const now = 1 as const;
export const setsLeft = 2 as const;
export const evictionsLeft = 3 as const;
export const lossesLeft = 4 as const;
export const lateLeft = 5 as const;
/** Places in a node: by how much it is ahead; the holder (attempt + 1) and its end; the same as remembered; no vote before. */
export const lead = 0 as const;
export const isSettable = 1 as const;
export const holder = 2 as const;
export const end = 3 as const;
export const memory = 4 as const;
export const memoryEnd = 5 as const;
export const notBefore = 6 as const;
export const nodeBytes = 7 as const;
