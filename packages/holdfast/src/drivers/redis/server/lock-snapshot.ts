import {
  localWaitersOf,
  lockState,
  type FenceState,
  type HeldKind,
  type Holder,
  type LockState,
} from "../../../lock-state.ts";
import type { Node } from "./server.ts";
import { clientOf } from "../protocol/token.ts";
import { readFields, readJsonFields, readWords } from "../protocol/metadata.ts";

/** What the script `inspect` answered for one lock. */
export interface Facts {
  readonly holder: string;
  readonly remainingMs: number;
  readonly first: bigint | null;
  readonly last: bigint | null;
  readonly words: ReadonlyMap<string, string>;
  readonly waiterCount: number;
  readonly members: readonly string[];
  /** Of a lock that several may hold. */
  readonly shared: SharedFacts | undefined;
  readonly latch: LatchFacts | undefined;
}

interface LatchFacts {
  readonly count: number;
  readonly left: number;
}

export interface SharedFacts {
  readonly kind: Exclude<HeldKind, "mutex">;
  readonly limit: number;
  readonly holders: readonly SharedHolder[];
}

export interface SharedHolder {
  readonly token: string;
  readonly remainingMs: number;
  /** The first number of its grant. */
  readonly fencingToken: bigint;
  /** The last one; on a node of a quorum a grant has one number. */
  readonly last: bigint;
  readonly weight: number;
  readonly words: ReadonlyMap<string, string>;
}

export function readFacts(value: unknown): Facts {
  const [holder, remainingMs, first, last, words, waiterCount, members, ...more] = value as unknown[];
  return {
    holder: String(holder),
    remainingMs: Number(remainingMs),
    first: first === "" ? null : BigInt(String(first)),
    last: last === "" ? null : BigInt(String(last)),
    words: readFields(words),
    waiterCount: Number(waiterCount),
    members: (members as unknown[]).map(String),
    shared: more[0] === "latch" ? undefined : readShared(more),
    latch: more[0] === "latch" ? { count: Number(more[1]), left: Number(more[2]) } : undefined,
  };
}

function readShared([kind, limit, holders]: readonly unknown[]): SharedFacts | undefined {
  if (kind === undefined) {
    return undefined;
  }
  const isReadWrite = kind === "read-write";
  return {
    kind: isReadWrite ? kind : "semaphore",
    limit: isReadWrite ? Infinity : Number(limit),
    holders: (holders as unknown[][]).map(([token, remainingMs, number, weight, words, last]) => ({
      token: String(token),
      remainingMs: Number(remainingMs),
      fencingToken: BigInt(String(number)),
      last: BigInt(String(last)),
      weight: Number(weight),
      words: readJsonFields(String(words)),
    })),
  };
}

/** Makes of the facts what is told: owners by their clients' descriptions, and no token. */
export async function describe(node: Node, key: string, facts: Facts): Promise<LockState> {
  const { shared, latch } = facts;
  if (latch) {
    return describeLatch(node, key, facts, latch);
  }
  return shared ? describeShared(node, key, facts, shared) : describeMutex(node, key, facts);
}

async function describeShared(
  node: Node,
  key: string,
  { members, waiterCount }: Facts,
  { kind, limit, holders }: SharedFacts,
): Promise<LockState> {
  const tokens = holders.map(({ token }) => token);
  const owners = await ownersOf(node, [...tokens, ...members.map(tokenOf)]);
  const told = holders.map((holder, index) => sharedHolderOf(kind, holder, owners[index] ?? "unknown"));
  return lockState({
    key,
    kind,
    limit,
    holders: told,
    waiters: members.map((_member, position) => ({
      owner: owners[holders.length + position] ?? "unknown",
      position,
    })),
    waiterCount: waiterCount + localWaitersOf(told),
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: greatestOf(holders.map(({ fencingToken }) => fencingToken)),
    nodes: [{ node: node.connection.name, held: holders.length > 0 }],
  });
}

async function describeLatch(
  node: Node,
  key: string,
  { members, waiterCount, remainingMs }: Facts,
  { count, left }: LatchFacts,
): Promise<LockState> {
  const owners = await ownersOf(node, members.map(tokenOf));
  return lockState({
    key,
    kind: "latch",
    limit: count,
    left,
    holders: [],
    waiters: owners.map((owner, position) => ({ owner, position })),
    waiterCount,
    remainingMs,
    fencingToken: null,
    nodes: [{ node: node.connection.name, held: left > 0 }],
  });
}

function greatestOf(numbers: readonly bigint[]): bigint | null {
  return numbers.reduce<bigint | null>(
    (greatest, each) => (greatest === null || each > greatest ? each : greatest),
    null,
  );
}

export function sharedHolderOf(kind: SharedFacts["kind"], holder: SharedHolder, clientOwner: string): Holder {
  const { words, remainingMs, weight } = holder;
  return {
    owner: clientOwner,
    ...readWords(words),
    fencingToken: numberOf(holder),
    ...(kind === "semaphore" ? { permits: weight } : { mode: weight === 1 ? "read" : "write" }),
    remainingMs,
  };
}

async function describeMutex(node: Node, key: string, facts: Facts): Promise<LockState> {
  const owners = await ownersOf(node, [facts.holder, ...facts.members.map(tokenOf)]);
  const isHeld = facts.holder !== "";
  const remainingMs = remainingOf(facts);
  const holders = isHeld ? [holderOf(facts, owners[0] ?? "unknown", newestOf(facts))] : [];
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders,
    waiters: facts.members.map((_member, position) => ({
      owner: owners[position + 1] ?? "unknown",
      position,
    })),
    waiterCount: facts.waiterCount + localWaitersOf(holders),
    remainingMs,
    fencingToken: facts.first,
    nodes: [{ node: node.connection.name, held: isHeld }],
  });
}

/**
 * Whether the lease with this number holds the key: `stale` for certain where no holder has the number. A holder may have handed its
 * lease on in memory since it reported its number, up to the last of its block: only that one is surely the present one.
 */
export function judgeFence(facts: Facts, fencingToken: bigint): FenceState {
  const { shared, last } = facts;
  if (shared) {
    const holding = shared.holders.find(
      (holder) => numberOf(holder) <= fencingToken && fencingToken <= holder.last && holder.remainingMs > 0,
    );
    return holding ? (fencingToken === holding.last ? "current" : "unknown") : "stale";
  } else if (clientOf(facts.holder) === undefined) {
    return "stale";
  }
  const newest = newestOf(facts);
  if (newest === null || last === null) {
    return "unknown"; // the server has lost the numbers of its holder
  } else if (fencingToken < newest || fencingToken > last) {
    return "stale";
  }
  return fencingToken === last ? "current" : "unknown";
}

/** The number that one of several holders told last, as it may have handed the lease on in memory; else the first of its block. */
function numberOf({ words, fencingToken, last }: SharedHolder): bigint {
  const told = BigInt(/^\d+$/.exec(words.get("number") ?? "")?.[0] ?? fencingToken);
  return told >= fencingToken && told <= last ? told : fencingToken;
}

/** Of a quorum's node: whether one of several holders has this number, and its time is not over. */
export function holdsWith({ words, fencingToken, remainingMs }: SharedHolder, number: bigint): boolean {
  const reported = words.get("number");
  return (reported === undefined ? fencingToken : BigInt(reported)) === number && remainingMs > 0;
}

/** The number that the holder told last, as it may have handed the lease on in memory; else the first of its block. */
export function newestOf(facts: Facts): bigint | null {
  const told = facts.words.get("number");
  return told === undefined ? facts.first : BigInt(told);
}

/** What is left of the holder's TTL, ms; null: nobody holds it, or without expiry. */
export function remainingOf(facts: Facts): number | null {
  return facts.holder !== "" && facts.remainingMs >= 0 ? facts.remainingMs : null;
}

export function holderOf(facts: Facts, clientOwner: string, fencingToken: bigint | null): Holder {
  const remainingMs = remainingOf(facts);
  return {
    owner: clientOwner,
    ...readWords(facts.words),
    ...(clientOf(facts.holder) !== undefined && fencingToken !== null ? { fencingToken } : {}),
    ...(remainingMs === null ? {} : { remainingMs }),
  };
}

/** Of a queue member. */
export function tokenOf(member: string): string {
  return member.split(" ")[0] ?? "";
}

/** The owners of tokens, asked for at once; "unknown" for what is not ours or whose client is gone. */
export async function ownersOf(node: Node, tokens: readonly string[]): Promise<string[]> {
  const ids = tokens.map((token) => clientOf(token));
  const known = [...new Set(ids.filter((id) => id !== undefined))];
  const owners = new Map<string, string>();
  if (known.length > 0) {
    const answers = await node.clients(known);
    known.forEach((id, index) => owners.set(id, readFields(answers[index]).get("owner") ?? "unknown"));
  }
  return ids.map((id) => (id === undefined ? "unknown" : (owners.get(id) ?? "unknown")));
}
