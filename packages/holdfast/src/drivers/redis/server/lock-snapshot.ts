import {
  grantTimes,
  localWaitersOf,
  lockState,
  waitTimes,
  type FenceState,
  type HeldKind,
  type Holder,
  type LockState,
} from "../../../lock-state.ts";
import type { RedisServer } from "./server.ts";
import { clientIdOf, ticketOf } from "../protocol/token.ts";
import { decodeHash, decodeJsonHash, decodeMetadata } from "../protocol/metadata.ts";

/** The remaining TTL of a key that does not exist. Another program may hold the lock with an empty string. */
const noKey = -2;

/** The reply of the operation `inspect` for one lock. */
export interface LockSnapshot {
  readonly holder: string;
  readonly remainingMs: number;
  readonly first: bigint | null;
  readonly last: bigint | null;
  readonly info: ReadonlyMap<string, string>;
  readonly waiterCount: number;
  readonly queueEntries: readonly string[];
  /** For a lock with several possible holders. */
  readonly shared: SharedLockSnapshot | undefined;
  readonly latch: LatchSnapshot | undefined;
}

interface LatchSnapshot {
  readonly count: number;
  readonly remaining: number;
}

export interface SharedLockSnapshot {
  readonly kind: Exclude<HeldKind, "mutex">;
  readonly limit: number;
  readonly holders: readonly SharedHolderEntry[];
}

export interface SharedHolderEntry {
  readonly token: string;
  readonly remainingMs: number;
  /** The first number of its grant. */
  readonly fencingToken: bigint;
  /** The last number of its grant. On a node of a quorum a grant has one number. */
  readonly last: bigint;
  readonly weight: number;
  readonly info: ReadonlyMap<string, string>;
}

export function parseSnapshot(value: unknown): LockSnapshot {
  const [holder, remainingMs, first, last, info, waiterCount, queueEntries, ...more] = value as unknown[];
  return {
    holder: String(holder),
    remainingMs: Number(remainingMs),
    first: first === "" ? null : BigInt(String(first)),
    last: last === "" ? null : BigInt(String(last)),
    info: decodeHash(info),
    waiterCount: Number(waiterCount),
    queueEntries: (queueEntries as unknown[]).map(String),
    shared: more[0] === "latch" ? undefined : parseShared(more),
    latch: more[0] === "latch" ? { count: Number(more[1]), remaining: Number(more[2]) } : undefined,
  };
}

function parseShared([kind, limit, holders]: readonly unknown[]): SharedLockSnapshot | undefined {
  if (kind === undefined) {
    return undefined;
  }
  const isReadWrite = kind === "read-write";
  return {
    kind: isReadWrite ? kind : "semaphore",
    limit: isReadWrite ? Infinity : Number(limit),
    holders: (holders as unknown[][]).map(([token, remainingMs, number, weight, info, last]) => ({
      token: String(token),
      remainingMs: Number(remainingMs),
      fencingToken: BigInt(String(number)),
      last: BigInt(String(last)),
      weight: Number(weight),
      info: decodeJsonHash(String(info)),
    })),
  };
}

/** The state of the lock without tokens, and with owners from the descriptions of their clients. */
export async function toLockState(
  node: RedisServer,
  key: string,
  snapshot: LockSnapshot,
): Promise<LockState> {
  const { shared, latch } = snapshot;
  if (latch) {
    return toLatchState(node, key, snapshot, latch);
  }
  return shared ? toSharedState(node, key, snapshot, shared) : toMutexState(node, key, snapshot);
}

async function toSharedState(
  node: RedisServer,
  key: string,
  { queueEntries, waiterCount }: LockSnapshot,
  { kind, limit, holders }: SharedLockSnapshot,
): Promise<LockState> {
  const tokens = holders.map(({ token }) => token);
  const owners = await ownersByClient(node, [...tokens, ...queueEntries.map(tokenOf)]);
  const nowMs = node.serverClock.micros() / 1000;
  const snapshot = holders.map((holder, index) =>
    sharedHolderOf(kind, holder, owners[index] ?? "unknown", nowMs),
  );
  return lockState({
    key,
    kind,
    limit,
    holders: snapshot,
    waiters: queueEntries.map((queueEntry, position) => ({
      owner: owners[holders.length + position] ?? "unknown",
      position,
      ...waitTimes(ticketOf(tokenOf(queueEntry)), nowMs),
    })),
    waiterCount: waiterCount + localWaitersOf(snapshot),
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: maxOf(holders.map(({ fencingToken }) => fencingToken)),
    nodes: [{ node: node.connection.name, held: holders.length > 0 }],
  });
}

async function toLatchState(
  node: RedisServer,
  key: string,
  { queueEntries, waiterCount, remainingMs }: LockSnapshot,
  { count, remaining }: LatchSnapshot,
): Promise<LockState> {
  const owners = await ownersByClient(node, queueEntries.map(tokenOf));
  return lockState({
    key,
    kind: "latch",
    limit: count,
    remaining,
    holders: [],
    waiters: owners.map((owner, position) => ({ owner, position })),
    waiterCount,
    remainingMs,
    fencingToken: null,
    nodes: [{ node: node.connection.name, held: remaining > 0 }],
  });
}

function maxOf(numbers: readonly bigint[]): bigint | null {
  return numbers.reduce<bigint | null>((max, each) => (max === null || each > max ? each : max), null);
}

export function sharedHolderOf(
  kind: SharedLockSnapshot["kind"],
  holder: SharedHolderEntry,
  clientOwner: string,
  nowMs: number,
): Holder {
  const { info, remainingMs, weight } = holder;
  return {
    owner: clientOwner,
    ...decodeMetadata(info),
    fencingToken: numberOf(holder),
    ...(kind === "semaphore" ? { permits: weight } : { mode: weight === 1 ? "read" : "write" }),
    remainingMs,
    ...grantTimes(holder.fencingToken, nowMs),
  };
}

async function toMutexState(node: RedisServer, key: string, snapshot: LockSnapshot): Promise<LockState> {
  const owners = await ownersByClient(node, [snapshot.holder, ...snapshot.queueEntries.map(tokenOf)]);
  const isHeld = snapshot.holder !== "" || snapshot.remainingMs !== noKey;
  const remainingMs = remainingOf(snapshot);
  const nowMs = node.serverClock.micros() / 1000;
  const holders = isHeld ? [holderOf(snapshot, owners[0] ?? "unknown", newestFence(snapshot), nowMs)] : [];
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders,
    waiters: snapshot.queueEntries.map((queueEntry, position) => ({
      owner: owners[position + 1] ?? "unknown",
      position,
      ...waitTimes(ticketOf(tokenOf(queueEntry)), nowMs),
    })),
    waiterCount: snapshot.waiterCount + localWaitersOf(holders),
    remainingMs,
    fencingToken: snapshot.first,
    nodes: [{ node: node.connection.name, held: isHeld }],
  });
}

/**
 * Whether the lease with this number holds the key. `stale` is certain: no holder has the number.
 *
 * A process may have handed its grant over in memory since it reported its number. So only the last number of the block is certain to
 * be current, or the number that the process reported as its last one.
 */
export function compareFence(snapshot: LockSnapshot, fencingToken: bigint): FenceState {
  const { shared } = snapshot;
  const last = lastFence(snapshot);
  if (shared) {
    const holding = shared.holders.find(
      (holder) =>
        numberOf(holder) <= fencingToken && fencingToken <= lastNumberOf(holder) && holder.remainingMs > 0,
    );
    return holding ? (fencingToken === lastNumberOf(holding) ? "current" : "unknown") : "stale";
  } else if (clientIdOf(snapshot.holder) === undefined) {
    return "stale";
  }
  const newest = newestFence(snapshot);
  if (newest === null || last === null) {
    return "unknown"; // the server has lost the fencing numbers of its holder
  } else if (fencingToken < newest || fencingToken > last) {
    return "stale";
  }
  return fencingToken === last ? "current" : "unknown";
}

/** The last number that this holder reported. Without a valid report, the first number of its block. */
function numberOf({ info, fencingToken, last }: SharedHolderEntry): bigint {
  const reported = BigInt(/^\d+$/.exec(info.get("number") ?? "")?.[0] ?? fencingToken);
  return reported >= fencingToken && reported <= last ? reported : fencingToken;
}

/** The last number of this holder's block that may be in use. */
function lastNumberOf({ info, last }: SharedHolderEntry): bigint {
  return reportedLast(info) ?? last;
}

/** The last number of the holder's block that may be in use. */
export function lastFence({ info, last }: LockSnapshot): bigint | null {
  return last === null ? null : (reportedLast(info) ?? last);
}

/** The number after which the holder uses no other; undefined: the holder may still hand its grant over in memory. */
export function reportedLast(info: ReadonlyMap<string, string>): bigint | undefined {
  const [digits] = /^\d+$/.exec(info.get("last") ?? "") ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}

/** For a node of a quorum: whether this holder has this number and has not expired. */
export function holdsWith({ info, fencingToken, remainingMs }: SharedHolderEntry, number: bigint): boolean {
  const reported = info.get("number");
  return (reported === undefined ? fencingToken : BigInt(reported)) === number && remainingMs > 0;
}

/** The last number that the holder reported. Without a report, the first number of its block. */
export function newestFence(snapshot: LockSnapshot): bigint | null {
  const holder = snapshot.info.get("number");
  return holder === undefined ? snapshot.first : BigInt(holder);
}

/** The holder's remaining TTL, ms. Null if the lock is free, or the grant never expires. */
export function remainingOf(snapshot: LockSnapshot): number | null {
  return snapshot.remainingMs >= 0 ? snapshot.remainingMs : null;
}

/** @param nowMs the server's clock, ms since 1970 */
export function holderOf(
  snapshot: LockSnapshot,
  clientOwner: string,
  fencingToken: bigint | null,
  nowMs: number,
): Holder {
  const remainingMs = remainingOf(snapshot);
  const isClient = clientIdOf(snapshot.holder) !== undefined;
  return {
    owner: clientOwner,
    ...decodeMetadata(snapshot.info),
    ...(isClient && fencingToken !== null ? { fencingToken } : {}),
    ...(remainingMs === null ? {} : { remainingMs }),
    ...(isClient ? grantTimes(snapshot.first, nowMs) : {}),
  };
}

/** The token of a queue entry. */
export function tokenOf(queueEntry: string): string {
  return queueEntry.split(" ")[0] ?? "";
}

/** The owners of tokens, from one request. "unknown" for a foreign value, or if the description of the client has expired. */
export async function ownersByClient(node: RedisServer, tokens: readonly string[]): Promise<string[]> {
  const ids = tokens.map((token) => clientIdOf(token));
  const known = [...new Set(ids.filter((id) => id !== undefined))];
  const owners = new Map<string, string>();
  if (known.length > 0) {
    const answers = await node.clients(known);
    known.forEach((id, index) => owners.set(id, decodeHash(answers[index]).get("owner") ?? "unknown"));
  }
  return ids.map((id) => (id === undefined ? "unknown" : (owners.get(id) ?? "unknown")));
}
