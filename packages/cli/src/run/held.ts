import type { Holder, Locks } from "holdfast";

import { formatDuration } from "../duration.ts";
import { sanitizeForTerminal } from "../inspect/table.ts";
import { within } from "./within.ts";

/** The limit for the question about the holder, ms, because the caller waits for the exit. */
const inspectLimitMs = 500;

interface HeldRequest {
  readonly keys: readonly string[];
  readonly waitMs: number;
  /** Whether `--wait` has an effect. */
  readonly mayWait?: boolean | undefined;
}

/** Explains that a lock was not acquired: its holder, the wait, and the flag that waits longer. */
export async function heldMessage(
  locks: Locks,
  { keys, waitMs, mayWait = true }: HeldRequest,
): Promise<string> {
  const { key, holder } = await firstHeld(locks, keys);
  const wait =
    waitMs === 0
      ? "; --wait 5m waits for the lock"
      : `; the wait of ${formatDuration(waitMs)} has ended, --wait 5m or --wait forever waits longer`;
  return `"${key}" is held${byHolder(holder)}${mayWait ? wait : ""}; see holdfast inspect ${key}`;
}

/** The holder in a sentence, without control characters, because owners and reasons come from other programs. */
export function byHolder(holder: Holder | undefined): string {
  if (holder === undefined) {
    return "";
  }
  const reason = holder.reason === undefined ? "" : ` (${holder.reason})`;
  return sanitizeForTerminal(` by ${holder.owner}${reason}`);
}

/** The first key with a holder. Without a reply in time the holder is unknown. */
export async function firstHeld(
  locks: Locks,
  keys: readonly string[],
): Promise<{ key: string; holder?: Holder | undefined }> {
  const states = await within(inspectLimitMs, Promise.all(keys.map((key) => locks.inspect(key)))).catch(
    () => undefined,
  );
  const held = states?.find(({ holders }) => holders.length > 0);
  return { key: held?.key ?? (keys[0] as string), holder: held?.holders[0] };
}
