import { isShare, numbers } from "./queue.ts";
import { ServerError } from "./server-error.ts";
import { digits, toNumber, type Scope } from "./state.ts";

/** The limit of who keeps out everybody. */
export const everybody: number = 2 ** 31;
const slackMs = 1_000;
const expiredAtOnce = 64;

/** What a token or a queue's member asks for. */
export interface Demand {
  readonly kind: string;
  readonly weight: number;
  readonly limit: number;
}

export interface Holding {
  readonly token: string;
  readonly number: number;
  readonly weight: number;
}

/** Who holds a lock that several may hold, as `lua/_holders.lua` has it. */
export class Holders {
  readonly #scope: Scope;
  readonly nowMs: number;
  /** Of those who hold, or held last; of those who wait where that is forgotten. */
  kind: string | undefined;
  limit: number | undefined;
  /** The sum of the weights. */
  used: number;
  /** There are more than are dropped at once. */
  readonly hasExpiredOnes: boolean;

  /** Looks at the lock as it is now: holders whose time is over are gone. */
  constructor(scope: Scope) {
    const { store, K, queue, fence, info, now } = scope;
    this.#scope = scope;
    this.nowMs = Math.floor(now / 1000);
    this.kind = store.hget(fence, "kind");
    this.limit = toNumber(store.hget(fence, "limit"));
    const used = toNumber(store.hget(info, "used"));
    this.used = used ?? 0;
    if (store.zcard(K) === 0) {
      store.del(info);
      this.used = 0;
      const [first] = store.zrange(queue, 0, 0);
      const demand = first === undefined ? undefined : demandOf(first);
      if (first !== undefined && this.limit === undefined) {
        this.kind = demand?.kind;
        this.limit = demand?.limit;
      }
    } else if (used === undefined || this.limit === undefined) {
      this.#restore();
    }
    const expired = store.zrangebyscore(K, this.nowMs, expiredAtOnce);
    for (const token of expired) {
      this.remove(token);
    }
    this.hasExpiredOnes = expired.length === expiredAtOnce;
  }

  /** What was said of the holders is gone, and they are not: their tokens say it again, but for the numbers. */
  #restore(): void {
    const { store, K, info, floor } = this.#scope;
    const newest = numbers(this.#scope).last ?? floor;
    const tokens = store.zrange(K, 0, Infinity);
    if (!tokens.every(demandOf)) {
      throw new ServerError("KINDMISMATCH sorted set of others");
    }
    this.used = 0;
    store.del(info);
    for (const token of tokens) {
      const { kind, weight, limit } = demandOf(token) as Demand;
      this.kind = kind;
      this.limit ??= limit;
      this.used += weight;
      this.write(token, newest, weight);
    }
    store.pexpire(info, Math.max(store.pttl(K), slackMs));
  }

  /** What who holds or waits asked for. */
  present(): string | undefined {
    const [first] = this.#scope.store.zrange(this.#scope.queue, 0, 0);
    if (first !== undefined) {
      return isShare(first) ? (demandOf(first)?.kind ?? "mutex") : "mutex";
    }
    return this.used > 0 ? this.kind : undefined;
  }

  /** Refuses who asks for something else than who holds or waits, and for another limit than the one that is remembered. */
  check(token: string): void {
    const { kind, limit } = demandOf(token) as Demand;
    const present = this.present();
    if (present !== undefined && present !== kind) {
      throw new ServerError(`KINDMISMATCH ${present}`);
    } else if (this.kind === kind && this.limit !== limit) {
      throw new ServerError(`LIMITMISMATCH ${this.limit}`);
    }
    this.kind = kind;
    this.limit = limit;
  }

  /** What the token holds. */
  of(token: string): Holding | undefined {
    const { store, info } = this.#scope;
    const [, number, weight] = /^(\d+) (\d+)$/.exec(store.hget(info, `h${token}`) ?? "") ?? [];
    return number === undefined ? undefined : { token, number: Number(number), weight: Number(weight) };
  }

  all(): Holding[] {
    const { store, K } = this.#scope;
    return store.zrange(K, 0, Infinity).map((token) => this.of(token) as Holding);
  }

  write(token: string, number: number, weight: number): void {
    const { store, info } = this.#scope;
    store.hset(info, "used", String(this.used), `h${token}`, `${digits(number)} ${weight}`);
  }

  remove(token: string): void {
    const { store, K, info } = this.#scope;
    const { weight } = this.of(token) as Holding;
    store.zrem(K, token);
    this.used -= weight;
    if (this.used === 0) {
      store.del(info);
    } else {
      store.hdel(info, `h${token}`, `w${token}`);
      store.hset(info, "used", String(this.used));
    }
  }

  /** What is said of the holders stays a second or two longer than any of them, and the fence for longer. */
  outlive(ttlMs: number): void {
    const { store, K, info, fence, retentionMs } = this.#scope;
    let longest = store.pttl(K);
    if (longest < ttlMs + slackMs) {
      longest = ttlMs + 2 * slackMs;
      store.pexpire(K, longest);
      store.pexpire(info, longest);
    }
    store.pexpire(fence, longest + retentionMs);
  }

  /** Writes a grant. @returns its number */
  admit(token: string, ttlMs: number): number {
    const { store, K, fence, floor } = this.#scope;
    const { weight } = demandOf(token) as Demand;
    const number = Math.max((toNumber(store.hget(fence, "last")) ?? 0) + 1, floor);
    const text = digits(number);
    this.used += weight;
    store.hset(fence, "first", text, "last", text, "kind", String(this.kind), "limit", String(this.limit));
    store.zput(K, this.nowMs + ttlMs, token);
    this.write(token, number, weight);
    this.outlive(ttlMs);
    return number;
  }

  note(token: string, words: string): void {
    if (words !== "") {
      this.#scope.store.hset(this.#scope.info, `w${token}`, words);
    }
  }
}

export function clientOf(token: string): string {
  return token.split(":")[1] as string;
}

export function demandOf(token: string): Demand | undefined {
  const [, mark, weight, limit] = /^[\da-f]+:[\da-f]+:([a-z])(\d*)\/?(\d*):\d+/i.exec(token) ?? [];
  switch (mark) {
    case "r":
      return { kind: "read-write", weight: 1, limit: everybody };
    case "w":
      return { kind: "read-write", weight: everybody, limit: everybody };
    case "s":
      return { kind: "semaphore", weight: Number(weight), limit: Number(limit) };
    case undefined:
    default:
      return undefined;
  }
}
