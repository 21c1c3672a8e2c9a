import type { StoreAttempt, StoreReply } from "../store/lease-store.ts";
import { changed, type Entry, type Grant, type LockDocument, type Stamp } from "./document.ts";
import type { Decision } from "./documents.ts";
import { NacosError } from "./errors.ts";
import { entryTtlMs, type Turn } from "./observations.ts";

type AcquireReply =
  | Exclude<StoreReply, { outcome: "held" }>
  | { readonly outcome: "held"; readonly grant: Grant | null; readonly position: number };

interface AcquireContext {
  readonly turn: Turn;
  readonly stamp: Stamp;
  /** The ID of this driver. */
  readonly client: string;
  /** Whether the caller has its result, so that the request must be neither granted nor queued. */
  readonly isSettled: boolean;
}

/** Further waiters are refused, because each write contains the whole queue. */
const maxQueue = 1_000;
/** If the first waiters of a queue are dead, the next ones try to take the lock one after the other, ms. */
const staggerMs = 250;

/** Decides one request for a lock. */
export function decideAcquire(
  attempt: StoreAttempt,
  document: LockDocument,
  context: AcquireContext,
): Decision<AcquireReply> {
  const { turn, stamp, isSettled } = context;
  if (document.grant?.token === attempt.token) {
    const { id: version, at } = stamp;
    const extended = extendedGrant(document.grant, { ...attempt, version, at, client: context.client });
    return grantedBy(changed(document, { grant: extended }, stamp), extended);
  }
  const place = placeOf(attempt, document.queue);
  const position = place.earlier.length;
  const isNext = position === 0 || turn.idleMs > entryTtlMs + position * staggerMs;
  if (turn.remainingMs === 0 && isNext && !isSettled) {
    return grant(attempt, document, place, context);
  }
  return isSettled || attempt.waitMs === null || attempt.waitMs <= 0
    ? leave(attempt, document, place, stamp)
    : wait(attempt, document, place, context);
}

/** Grants the lock, and removes the own entry and those of dead waiters before it. */
function grant(
  { token, ttlMs, owner, reason, labels }: StoreAttempt,
  document: LockDocument,
  { earlier }: Place,
  { stamp, client }: AcquireContext,
): Decision<AcquireReply> {
  const { id: version, at } = stamp;
  const fencingToken = document.fencingToken + 1;
  const granted = { token, fencingToken, ttlMs, version, at, since: at, client, owner, reason, labels };
  const queue = document.queue.filter((entry) => entry.token !== token && !earlier.includes(entry));
  return grantedBy(changed(document, { grant: granted, fencingToken, queue }, stamp), granted);
}

function leave(
  { token }: StoreAttempt,
  document: LockDocument,
  { own, earlier }: Place,
  stamp: Stamp,
): Decision<AcquireReply> {
  const result = { outcome: "held", grant: document.grant, position: earlier.length } as const;
  const queue = document.queue.filter((entry) => entry.token !== token);
  return own ? { result, next: changed(document, { queue }, stamp) } : { result };
}

/** Keeps the queue entry, or enters the queue. An entry that was removed gets its old place again. */
function wait(
  attempt: StoreAttempt,
  document: LockDocument,
  { own, earlier }: Place,
  { turn, stamp }: AcquireContext,
): Decision<AcquireReply> {
  const { token, owner } = attempt;
  const position = earlier.length;
  const ticket = own?.ticket ?? ticketOf(attempt) ?? document.ticket + 1;
  const remainingMs = position === 0 ? turn.remainingMs : Infinity;
  const result = { outcome: "queued", ticket: String(ticket), position, remainingMs } as const;
  if (own) {
    return { result };
  }
  if (document.queue.length >= maxQueue) {
    const message = `${maxQueue} waiters are in the queue already`;
    throw new NacosError(message, { outcome: "none", retryable: true });
  }
  const queue = [...document.queue, { token, ticket, owner }].sort((a, b) => a.ticket - b.ticket);
  const last = Math.max(document.ticket, ticket);
  return { result, next: changed(document, { queue, ticket: last }, stamp) };
}

/** The grant with a TTL that starts again, and is not shorter than before. */
export function extendedGrant(
  grant: Grant,
  changes: Pick<Grant, "ttlMs" | "version" | "at" | "client">,
): Grant {
  const { version, at, client } = changes;
  return { ...grant, ttlMs: Math.max(grant.ttlMs, changes.ttlMs), version, at, client };
}

function grantedBy(next: LockDocument, { fencingToken, ttlMs }: Grant): Decision<AcquireReply> {
  return { result: { outcome: "granted", fencingToken: BigInt(fencingToken), ttlMs }, next };
}

/** The entry of a request, and those before it. A request without an entry and without a ticket comes last. */
interface Place {
  readonly own: Entry | undefined;
  readonly earlier: readonly Entry[];
}

function placeOf(attempt: StoreAttempt, queue: readonly Entry[]): Place {
  const own = queue.find((entry) => entry.token === attempt.token);
  const ticket = own?.ticket ?? ticketOf(attempt) ?? Infinity;
  return { own, earlier: queue.filter((entry) => entry !== own && entry.ticket < ticket) };
}

function ticketOf({ ticket }: StoreAttempt): number | undefined {
  return ticket === undefined ? undefined : Number(ticket);
}
