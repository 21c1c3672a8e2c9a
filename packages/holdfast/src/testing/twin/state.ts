import type { PubSub } from "./pub-sub.ts";
import { notAsked, ServerError } from "./server-error.ts";
import type { Store } from "./store.ts";

/** An answer of a script, as a client library gives it. */
export type Answer = readonly unknown[] | number;

/** What scripts see of their server. */
export interface Server {
  readonly store: Store;
  readonly pubSub: PubSub;
  readonly version: string;
  readonly runId: string;
  readonly standing: Standing;
  micros(): number;
  uptimeSeconds(): number;
}

/** What decides whether a node of a quorum may vote, beside its run and its time. */
export interface Standing {
  readonly role: "master" | "slave";
  readonly replicationId: string;
  /** `appendonly yes` and `appendfsync always`. */
  readonly isDurable: boolean;
  readonly maxmemoryPolicy: string;
  /** Bytes; 0: no limit. */
  readonly maxmemory: number;
}

/** What every operation sees, as `_state.lua` has it: the time, the keys of the lock in turn, and who holds it as the operation begins. */
export interface Scope {
  readonly server: Server;
  readonly store: Store;
  readonly now: number;
  readonly isQuorum: boolean;
  /** The least number of a new grant. */
  readonly floor: number;
  readonly retentionMs: number;
  readonly queueBound: number;
  readonly K: string;
  readonly queue: string;
  readonly fence: string;
  readonly info: string;
  readonly holder: string | null;
}

/** Lua's `%.0f` of a whole number. */
export function digits(number: number): string {
  return BigInt(number).toString();
}

/** Lua's `tonumber` of what a hash may hold. */
export function toNumber(text: string | undefined): number | undefined {
  const number = text === undefined || text.trim() === "" ? NaN : Number(text);
  return Number.isNaN(number) ? undefined : number;
}

/** Writes a grant of `want` numbers. */
export function put(scope: Scope, token: string, ttl: string, want: string): [first: number, last: number] {
  const { store, floor, retentionMs, K, fence } = scope;
  const newest = toNumber(store.hget(fence, "last")) ?? 0;
  const first = Math.max(newest + 1, floor);
  const last = first + Number(want) - 1;
  store.hset(fence, "first", digits(first), "last", digits(last));
  store.pexpire(fence, Number(ttl) + retentionMs);
  store.set(K, token, Number(ttl));
  return [first, last];
}

/** @param words JSON of [field, value, ...]; empty: there are none */
export function writeInfo({ store, info }: Scope, token: string, ttl: string, words: string): void {
  if (words !== "") {
    store.del(info);
    store.hset(info, "token", token, ...(JSON.parse(words) as string[]));
    store.pexpire(info, Number(ttl));
  }
}

export function granted(scope: Scope, token: string, ttl: string, want: string, words: string): Answer {
  const [first, last] = put(scope, token, ttl, want);
  writeInfo(scope, token, ttl, words);
  return [1, first, last, token];
}

/** A replica refuses what writes, and this what was only read: it may be old. */
export function requirePrimary({ standing }: Server): void {
  if (standing.role !== "master") {
    throw new ServerError(notAsked);
  }
}
