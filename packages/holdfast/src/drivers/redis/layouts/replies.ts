import type { LossReason } from "../../../errors.ts";
import { lockState, waitTimes, type Holder, type LockKind, type LockState } from "../../../lock-state.ts";
import type { StoreAttempt, StoreReply } from "../../store/lease-store.ts";

/** The metadata of a holder in the records of this library. */
interface Metadata {
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A holder in the reply of a script: its text in the lock key, its remaining TTL, its mode, and the record of this library. */
type HolderReply = readonly [text: unknown, remainingMs: unknown, mode: unknown, record: unknown];

export function encodeLayoutMetadata({
  owner,
  reason,
  labels,
}: Pick<StoreAttempt, "owner" | "reason" | "labels">): string {
  return JSON.stringify({ owner, reason, labels });
}

/**
 * The reply to an acquire; undefined: the queue is full.
 * @param foreignPollMs the delay until the first waiter polls while the other library has the lock. Some of its locks announce no release:
 * Redisson's spin lock and fair lock, and Spring's lock with polls
 */
export function parseAcquire(
  reply: readonly unknown[],
  { library, foreignPollMs }: { library: string; foreignPollMs: number },
): StoreReply | undefined {
  const [outcome, first, second, third, isForeign] = reply;
  switch (String(outcome)) {
    case "granted":
      return { outcome: "granted", fencingToken: BigInt(String(first)), ttlMs: Number(second) };
    case "held": {
      const holder =
        (second as HolderReply).length > 0 ? parseHolder(second as HolderReply, library) : undefined;
      return { outcome: "held", holder, position: Number(first) };
    }
    case "queued": {
      const [position, remainingMs] = [Number(second), Number(third) < 0 ? Infinity : Number(third)];
      const pollMs = position === 0 && Number(isForeign) === 1 ? foreignPollMs : Infinity;
      return {
        outcome: "queued",
        ticket: String(first),
        position,
        remainingMs: Math.min(remainingMs, pollMs),
      };
    }
    default:
      return undefined;
  }
}

/** The TTL in force, or why the grant is lost. */
export function parseRemaining(reply: unknown): number | LossReason {
  const text = String(reply);
  return /^-?\d+$/.test(text) ? Number(text) : (text as LossReason);
}

/** The state of a lock. */
export function parseState(
  reply: readonly unknown[],
  { key, node, library }: { key: string; node: string; library: string },
): LockState {
  const [shown, waiting, waiterCount, now] = reply as [
    readonly HolderReply[],
    readonly (readonly [owner: unknown, ticket: unknown])[],
    unknown,
    unknown,
  ];
  const nowMs = Number(now) / 1000;
  const holders = shown.map((holder) => parseHolder(holder, library)).sort(byExpiry);
  const isShared = holders.some(({ mode }) => mode !== undefined);
  const kind: LockKind = isShared ? "read-write" : "mutex";
  const fencingTokens = holders.flatMap(({ fencingToken }) => fencingToken ?? []);
  return lockState({
    key,
    kind,
    limit: isShared ? Infinity : 1,
    holders,
    waiters: waiting.map(([owner, ticket], position) => {
      return { owner: String(owner), position, ...waitTimes(Number(ticket), nowMs) };
    }),
    waiterCount: Number(waiterCount),
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: fencingTokens.length > 0 ? fencingTokens.reduce((a, b) => (a > b ? a : b)) : null,
    nodes: [{ node, held: holders.length > 0 }],
  });
}

function parseHolder([text, remainingMs, mode, record]: HolderReply, library: string): Holder {
  const common: Pick<Holder, "remainingMs" | "mode"> = {
    ...(Number(remainingMs) < 0 ? {} : { remainingMs: Number(remainingMs) }),
    ...(mode === "read" || mode === "write" ? { mode } : {}),
  };
  const [, fence, metadata = ""] = /^(\d+) (.*)$/s.exec(String(record)) ?? [];
  if (fence === undefined) {
    return { owner: `${library} ${String(text)}`, ...common };
  }
  const { owner, reason, labels } = JSON.parse(metadata) as Metadata;
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: BigInt(fence),
    ...common,
  };
}

function byExpiry(one: Holder, other: Holder): number {
  return (one.remainingMs ?? Infinity) - (other.remainingMs ?? Infinity);
}
