import type { Lock, PastHold } from "../api/types.ts";
import { formatDuration, formatTicking } from "./duration.ts";
import { heldMs, isRenewing, leftMs, oldestWaitMs, type Row } from "./row.ts";

/** A part of a sentence. `strong` parts are names. */
export interface Part {
  readonly text: string;
  readonly isStrong?: true;
}

/** Facts that only some engines report. */
export interface Extras {
  /** How long ago the holder renewed, ms, as its process reports. */
  readonly renewedMs?: number | undefined;
  /** The last hold of a free lock. */
  readonly last?: PastHold | undefined;
}

/** The sentence of the page of a lock: its holder, since when, its waiters, and whether the holder is alive. */
export function sentenceOf(row: Row, now: number, extras: Extras = {}): Part[] {
  const { lock } = row;
  if (lock.remaining !== undefined) return latchSentence(row);
  if (lock.holders.length === 0) return freeSentence(row, now, extras.last);
  const renewed = renewedText(row, now, extras.renewedMs);
  const clauses = [renewed, waitersText(row, now)].filter((text) => text !== "");
  return [
    { text: lock.key, isStrong: true },
    { text: " is held by " },
    ...holdersText(lock),
    { text: `${heldText(row, now)}${reasonText(lock)}` },
    { text: clauses.length === 0 ? ". " : `, ${clauses.join(", ")}. ` },
    { text: prognosis(row, now, extras.renewedMs) },
  ];
}

export function plainText(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join("");
}

function latchSentence({ key, lock }: Row): Part[] {
  const { remaining, limit } = lock;
  const state = remaining === 0 ? " is an open latch" : ` is a latch with ${remaining} of ${limit} left`;
  const waiting = lock.waiterCount === 0 ? "" : `, and ${lock.waiterCount} wait for it`;
  const end = lock.remainingMs === null ? "" : ` It ends in ${formatTicking(lock.remainingMs)}.`;
  return [{ text: key, isStrong: true }, { text: `${state}${waiting}.${end}` }];
}

function freeSentence({ key, lock }: Row, now: number, last: PastHold | undefined): Part[] {
  const waiting = lock.waiterCount;
  const rest = waiting === 0 ? " is free." : ` is free, and ${waitersCount(waiting)}: the next grant is due.`;
  const parts: Part[] = [{ text: key, isStrong: true }, { text: rest }];
  if (last?.until != null) {
    const end = last.end === undefined || last.end === "unknown" ? "ended" : endWords[last.end];
    const ago = formatTicking(Math.max(0, now - last.until));
    parts.push(
      { text: " The last holder was " },
      { text: last.owner, isStrong: true },
      { text: `, ${end} ${ago} ago.` },
    );
  }
  return parts;
}

const endWords = { released: "released", expired: "expired", lost: "lost", broken: "broken" } as const;

function holdersText({ kind, holders, limit }: Lock): Part[] {
  const [first] = holders;
  if (first === undefined) return [];
  const name: Part =
    first.owner === "unknown" ? { text: "an unknown holder" } : { text: first.owner, isStrong: true };
  const others = holders.length - 1;
  const mode = first.mode === undefined ? "" : first.mode === "write" ? " for writing" : " for reading";
  const more = others === 0 ? "" : ` and ${others} ${others === 1 ? "other" : "others"}`;
  const permits = holders.reduce((sum, holder) => sum + (holder.permits ?? 1), 0);
  const share = kind === "semaphore" && limit !== null ? ` (${permits} of ${limit} permits)` : "";
  return [name, { text: `${more}${mode}${share}` }];
}

function heldText(row: Row, now: number): string {
  const held = heldMs(row, now);
  if (held === undefined) return "";
  return row.isSinceExact ? ` for ${formatTicking(held)}` : ` for at least ${formatTicking(held)}`;
}

function reasonText({ holders: [holder] }: Lock): string {
  return holder?.reason === undefined ? "" : ` (reason “${holder.reason}”)`;
}

function renewedText({ renewedAt }: Row, now: number, renewedMs: number | undefined): string {
  const ago = renewedMs ?? (renewedAt === undefined ? undefined : Math.max(0, now - renewedAt));
  return ago === undefined ? "" : `renewed ${formatTicking(ago)} ago`;
}

function waitersText(row: Row, now: number): string {
  const { waiterCount } = row.lock;
  if (waiterCount === 0) return "";
  const oldest = oldestWaitMs(row, now);
  const text = waitersCount(waiterCount);
  if (oldest === undefined) return text;
  return waiterCount === 1
    ? `${text} for ${formatTicking(oldest)}`
    : `${text}, the oldest for ${formatTicking(oldest)}`;
}

function waitersCount(count: number): string {
  return count === 1 ? "1 waits" : `${count} wait`;
}

function prognosis(row: Row, now: number, renewedMs: number | undefined): string {
  const left = leftMs(row, now);
  const free = left === undefined ? "" : `in ${formatTicking(left)}`;
  if (row.state === "foreign") {
    return left === undefined
      ? "The holder is not a Holdfast client, and its key has no expiry. Only the holder frees it, or a deletion of the key on the engine."
      : `The holder is not a Holdfast client. The lock frees itself ${free} without a renewal.`;
  }
  if (row.state === "no expiry") return "The hold has no expiry: only a release or a break frees it.";
  if (row.state === "late") return `The holder has not renewed in time. The lock frees itself ${free}.`;
  return isRenewing(row) || renewedMs !== undefined
    ? "The holder is alive: it renews."
    : `The lock frees itself ${free} without a renewal.`;
}

/** How long an estimate is known, for titles: "known since 14:05, 2h 3m ago". */
export function knownSinceText(knownSince: number, now: number): string {
  return `known for ${formatDuration(Math.max(1_000, now - knownSince))}`;
}
