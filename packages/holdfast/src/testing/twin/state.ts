import type { PubSub } from "./pub-sub.ts";
import type { Store } from "./store.ts";

/** What scripts see of their server. */
export interface Server {
  readonly store: Store;
  readonly pubSub: PubSub;
  readonly version: string;
  readonly runId: string;
  micros(): number;
  uptimeSeconds(): number;
}

/** What every operation sees, as `_state.lua` has it: the server, the batch, the time, the keys of the lock in turn. */
export interface Scope {
  readonly server: Server;
  readonly store: Store;
  readonly now: number;
  readonly retentionMs: number;
  readonly queueBound: number;
  readonly K: string;
  readonly queue: string;
  readonly fence: string;
  readonly info: string;
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

export function numbers({ store, fence }: Scope): { first: number | undefined; last: number | undefined } {
  return { first: toNumber(store.hget(fence, "first")), last: toNumber(store.hget(fence, "last")) };
}

/** @param words JSON of [field, value, ...]; empty: there are none */
export function writeInfo({ store, info }: Scope, token: string, ttl: string, words: string): void {
  if (words !== "") {
    store.del(info);
    store.hset(info, "token", token, ...(JSON.parse(words) as string[]));
    store.pexpire(info, Number(ttl));
  }
}

/** Raises a TTL, never shortens it. */
export function raiseTtl({ store, K }: Scope, ttl: string): void {
  const left = store.pttl(K);
  if (left >= 0 && left < Number(ttl)) {
    store.pexpire(K, Number(ttl));
  }
}
