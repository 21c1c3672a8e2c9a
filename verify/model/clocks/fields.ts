/** The phases of an attempt. */
export const phases = { idle: 0, seeking: 1, holding: 2, ended: 3 } as const;

/** The bytes of an attempt: its phase, and the time of its request. */
export const attemptBytes = 2 as const;
export const headBytes = 6 as const;
/** Fields of the head. */
export const broken = 0 as const;
export const now = 1 as const;
export const setsLeft = 2 as const;
export const evictionsLeft = 3 as const;
export const lossesLeft = 4 as const;
export const lateLeft = 5 as const;
/**
 * Fields of a node: the lead of its clock, the holder (attempt + 1) with its end, and the remembered vote with its end. A later vote does not
 * count before the last field.
 */
export const lead = 0 as const;
export const isSettable = 1 as const;
export const holder = 2 as const;
export const end = 3 as const;
export const memory = 4 as const;
export const memoryEnd = 5 as const;
export const notBefore = 6 as const;
export const nodeBytes = 7 as const;

/** The largest offset, in units of D, to which a clock is set. A larger offset has the same effect. */
export const maxOffset = 4;
/** The initial value of every clock, so that no clock shows less than 1. */
export const startTime = 8;
