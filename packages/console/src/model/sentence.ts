import type { Lock, PastHold } from "../api/types.ts";
import { formatTicking, formatTime } from "./duration.ts";
import { longText } from "./long-hold.ts";
import { processOf } from "./owner.ts";
import { heldMs, isLong, isRenewing, leftMs, oldestWaitMs, type Row } from "./row.ts";

/** A part of a sentence. */
export interface Part {
  readonly text: string;
  /** The name of a lock. */
  readonly isStrong?: true;
  /** The name of an owner, which has a page. */
  readonly isOwner?: true;
}

/** Facts that only some engines report. */
export interface Extras {
  /** How long ago the holder renewed, ms, as its process reports or the page has seen. */
  readonly renewedMs?: number | undefined;
  /** Whether the row is not of the present. */
  readonly isOld?: boolean;
  /** The last hold of a free lock. */
  readonly last?: PastHold | undefined;
}

/** The sentence of the page of a lock: its holder, since when, its waiters, and what is known of the holder. */
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
    {
      text: extras.isOld === true ? "Its present state is not known." : prognosis(row, now, extras.renewedMs),
    },
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
      { text: last.owner, isOwner: true },
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
    first.owner === "unknown" ? { text: "an unknown holder" } : { text: first.owner, isOwner: true };
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
  if (isRenewing(row) || renewedMs !== undefined) return renewingText(row, now);
  return row.lock.holders.length > 1
    ? `Without renewals all its leases end ${free}.`
    : dueText(row, left ?? 0);
}

/** A renewal proves that the process lives, and not that its work advances. */
function renewingText(row: Row, now: number): string {
  const lives = "The process is alive and renews the lease";
  if (!isLong(row, now) || row.long === undefined) return `${lives}.`;
  const process = processOf(row.lock.holders[0]?.owner ?? "") ?? "the process";
  return `${lives}, which is held long: ${longText(row.long)}. If its log shows no progress, stop ${process}: the lock frees itself when the lease ends. If you cannot stop it now, break the lock.`;
}

/** Before the first renewal that this page sees. A healthy client renews after a third of the TTL. */
function dueText({ ttlMs = 0 }: Row, left: number): string {
  const dueMs = left - (ttlMs * 2) / 3;
  const due = dueMs < 1_000 ? "is due" : `is due in ${formatTicking(dueMs)}`;
  return `The next renewal ${due}; without one the lease ends in ${formatTicking(left)}.`;
}

/** Since when the service has observed the locks. It does so while a console is open. */
export function observedText(knownSince: number, now: number): string {
  const isToday = formatTime(knownSince).slice(0, 10) === formatTime(now).slice(0, 10);
  return `observed since ${formatTime(knownSince).slice(isToday ? 11 : 0)}`;
}
