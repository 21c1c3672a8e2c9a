import type { OwnerHold, PastHold } from "../api/types.ts";

/** A hold that an operator ended. */
export interface BrokenHold extends PastHold {
  readonly until: number;
}

/** For how long the pages show what is left to do after a break, ms. */
const shownMs = 3_600_000;

/** Whether a process reports the broken grant as held. */
export function isGrant({ key, fencingToken }: OwnerHold, broken: PastHold): boolean {
  return key === broken.key && fencingToken !== undefined && fencingToken === broken.fencingToken;
}

/** The holds that were broken in the last hour. Their processes may still run. */
export function brokenLately(holds: readonly PastHold[], now: number): BrokenHold[] {
  return holds.flatMap((hold) => {
    const { end, until } = hold;
    return end === "broken" && until !== null && until > now - shownMs ? [{ ...hold, until }] : [];
  });
}

/** The operator of a break and the reason, for the end of a sentence. Empty: not known. */
export function brokenBy(hold: PastHold): string {
  return hold.break === undefined ? "" : ` by ${hold.break.principal} (“${hold.break.reason}”)`;
}
