import { ApiError, get, post } from "../api/client.ts";
import type { Broken, BrokenLocks, Lock, PastHold } from "../api/types.ts";
import type { BreakTarget } from "../model/break-target.ts";

export interface BreakOutcome {
  readonly key: string;
  readonly result: "broken" | "moved" | "unknown";
  readonly text: string;
}

const movedText = "It moved on, look again.";

/** The grants that this page has broken, as `key token`. The history of the service learns of the ends later. */
const brokenHere = new Set<string>();

/** The hold, with the end that this page has caused. */
export function withOwnBreak(hold: PastHold): PastHold {
  const isBroken = hold.until !== null && brokenHere.has(`${hold.key} ${hold.fencingToken}`);
  return isBroken ? { ...hold, end: "broken" } : hold;
}

/** Breaks the grants with the fencing tokens that were shown, and no others. */
export async function breakAll(
  targets: readonly BreakTarget[],
  reason: string,
  owner: string | undefined,
): Promise<BreakOutcome[]> {
  if (owner !== undefined) {
    const together = await breakOwner(targets, reason, owner);
    if (together !== undefined) return together;
  }
  const outcomes: BreakOutcome[] = [];
  for (const target of targets) outcomes.push(await breakOne(target, reason));
  return outcomes;
}

async function breakOwner(
  targets: readonly BreakTarget[],
  reason: string,
  owner: string,
): Promise<BreakOutcome[] | undefined> {
  const locks = targets.map(({ key, fencingToken }) => ({ key, fencingToken }));
  try {
    const { results } = await post<BrokenLocks>("v1/owners/break", { owner, reason, locks });
    for (const { key, fencingToken, broken } of results) {
      if (broken === true) brokenHere.add(`${key} ${fencingToken}`);
    }
    return results.map(({ key, broken }) => ({ key, ...outcomeOf(broken) }));
  } catch (error) {
    if (error instanceof ApiError && error.isMissing) return undefined;
    return targets.map(({ key }) => ({ key, result: "unknown", text: textOf(error) }));
  }
}

async function breakOne({ key, fencingToken }: BreakTarget, reason: string): Promise<BreakOutcome> {
  try {
    const { auditId } = await post<{ auditId?: string }>("v1/lock/break", { key, fencingToken, reason });
    brokenHere.add(`${key} ${fencingToken}`);
    const sentences = [await nextHolder(key), auditId === undefined ? "" : "The audit has the break"];
    return { key, result: "broken", text: sentences.filter((each) => each !== "").join(". ") };
  } catch (error) {
    if (error instanceof ApiError && error.status === 412) return { key, result: "moved", text: movedText };
    return { key, result: "unknown", text: textOf(error) };
  }
}

async function nextHolder(key: string): Promise<string> {
  try {
    const { holders, waiterCount } = await get<Lock>("v1/lock", { key });
    if (holders.length > 0) return `Next holder: ${holders.map(({ owner }) => owner).join(", ")}`;
    return waiterCount > 0 ? "The next grant is due" : "The lock is free";
  } catch {
    return "";
  }
}

function outcomeOf(broken: Broken): Pick<BreakOutcome, "result" | "text"> {
  if (broken === true) return { result: "broken", text: "" };
  return broken === false
    ? { result: "moved", text: movedText }
    : { result: "unknown", text: "The engine did not reply: the grant may be broken." };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
