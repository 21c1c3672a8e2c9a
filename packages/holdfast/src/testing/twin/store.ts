import { globMatcher } from "./glob.ts";
import { readOnly, ServerError, wrongArguments, wrongExpiry, wrongType } from "./server-error.ts";
import { SortedSet } from "./sorted-set.ts";

/** What a key holds, as a test looks at it. */
export type Stored =
  | { readonly type: "string"; readonly value: string; readonly ttlMs: number }
  | {
      readonly type: "zset";
      readonly value: readonly [member: string, score: number][];
      readonly ttlMs: number;
    }
  | {
      readonly type: "hash";
      readonly value: readonly (readonly [field: string, value: string])[];
      readonly ttlMs: number;
    };

interface Entry {
  readonly value: string | SortedSet | Map<string, string>;
  /** In which order keys were made: what a scan goes by. */
  readonly serial: number;
  /** The last millisecond of the key; undefined: it stays. */
  expiresAt: number | undefined;
}

/** The data of one server: strings, sorted sets and hashes that expire. Its methods do what Redis' commands of these names do. */
export class Store {
  /** How often {@link flushAll} was called in this run of the server. */
  flushes = 0;
  /** Whether what runs now may only read, as a script on a replica. */
  isReadOnly = false;
  readonly #micros: () => number;
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  /** @param micros the server's time */
  constructor(micros: () => number) {
    this.#micros = micros;
  }

  get(key: string): string | null {
    const value = this.#live(key)?.value ?? null;
    if (value !== null && typeof value !== "string") {
      throw new ServerError(wrongType);
    }
    return value;
  }

  set(key: string, value: string, ttlMs?: number): void {
    this.#requireWrites();
    if (ttlMs !== undefined && !(ttlMs > 0)) {
      throw new ServerError(wrongExpiry);
    }
    const expiresAt = ttlMs === undefined ? undefined : this.#now() + ttlMs;
    this.#entries.set(key, { value, serial: this.#serialOf(key), expiresAt });
  }

  /** @returns how many there were */
  del(...keys: readonly string[]): number {
    this.#requireWrites();
    return keys.filter((key) => this.#live(key) && this.#entries.delete(key)).length;
  }

  exists(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  /** @returns the ms left; -1: it stays; -2: there is no such key */
  pttl(key: string): number {
    const entry = this.#live(key);
    if (!entry) {
      return -2;
    }
    return entry.expiresAt === undefined ? -1 : Math.max(0, entry.expiresAt - this.#now());
  }

  pexpire(key: string, ttlMs: number): void {
    this.#requireWrites();
    const entry = this.#live(key);
    if (entry && ttlMs <= 0) {
      this.#entries.delete(key);
    } else if (entry) {
      entry.expiresAt = this.#now() + ttlMs;
    }
  }

  /** @param expiresAt the last millisecond of the key; if it has passed, the key goes at once */
  pexpireat(key: string, expiresAt: number): void {
    this.pexpire(key, expiresAt - this.#now());
  }

  persist(key: string): void {
    this.#requireWrites();
    const entry = this.#live(key);
    if (entry) {
      entry.expiresAt = undefined;
    }
  }

  /** @param pairs field, value, ... */
  hset(key: string, ...pairs: readonly string[]): void {
    this.#requireWrites();
    if (pairs.length === 0 || pairs.length % 2 !== 0) {
      throw new ServerError(
        pairs.length < 2 ? wrongArguments : "ERR wrong number of arguments for 'hset' command",
      );
    }
    const fields = this.#hash(key) ?? this.#make(key, new Map<string, string>());
    for (let i = 0; i < pairs.length; i += 2) {
      fields.set(pairs[i] as string, pairs[i + 1] as string);
    }
  }

  hget(key: string, field: string): string | undefined {
    return this.#hash(key)?.get(field);
  }

  /** @returns field, value, ... */
  hgetall(key: string): string[] {
    return [...(this.#hash(key) ?? [])].flat();
  }

  /** ZADD with NX: a member that is there keeps its score. */
  zadd(key: string, score: number, member: string): void {
    this.#requireWrites();
    (this.#sortedSet(key) ?? this.#make(key, new SortedSet())).add(score, member);
  }

  /** ZADD: a member that is there gets the new score. */
  zput(key: string, score: number, member: string): void {
    this.#requireWrites();
    (this.#sortedSet(key) ?? this.#make(key, new SortedSet())).put(score, member);
  }

  zscore(key: string, member: string): number | undefined {
    return this.#sortedSet(key)?.score(member);
  }

  /** ZRANGEBYSCORE from `least` to `most`, with a LIMIT. */
  zrangebyscore(key: string, most: number, count: number, least: number = -Infinity): string[] {
    const entries = this.#sortedSet(key)?.entries() ?? [];
    return entries
      .filter(([, score]) => score >= least && score <= most)
      .slice(0, count)
      .map(([member]) => member);
  }

  type(key: string): Stored["type"] | "none" {
    const value = this.#live(key)?.value;
    if (value === undefined || typeof value === "string") {
      return value === undefined ? "none" : "string";
    }
    return value instanceof SortedSet ? "zset" : "hash";
  }

  hdel(key: string, ...fields: readonly string[]): void {
    this.#requireWrites();
    const hash = this.#hash(key);
    for (const field of fields) {
      hash?.delete(field);
    }
    if (hash?.size === 0) {
      this.#entries.delete(key);
    }
  }

  zrem(key: string, member: string): void {
    this.#requireWrites();
    const set = this.#sortedSet(key);
    if (set?.remove(member) === true && set.size === 0) {
      this.#entries.delete(key);
    }
  }

  zpopmin(key: string): [member: string, score: number] | undefined {
    this.#requireWrites();
    const set = this.#sortedSet(key);
    const first = set?.first();
    if (first) {
      this.zrem(key, first[0]);
    }
    return first;
  }

  zrank(key: string, member: string): number | undefined {
    return this.#sortedSet(key)?.rank(member);
  }

  zrange(key: string, start: number, stop: number): string[] {
    return this.#sortedSet(key)?.range(start, stop) ?? [];
  }

  zcard(key: string): number {
    return this.#sortedSet(key)?.size ?? 0;
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.exists(key));
  }

  flushAll(): void {
    this.#requireWrites();
    this.#entries.clear();
    this.flushes += 1;
  }

  /** SCAN … MATCH … COUNT of what may be locks: what was there all the while is found, once. */
  scan(cursor: string, pattern: string, count: number): [cursor: string, keys: string[]] {
    const matches = globMatcher(pattern);
    const rest = this.keys()
      .map((key) => ({ key, entry: this.#entries.get(key) as Entry }))
      .filter(({ entry }) => entry.serial > Number(cursor))
      .sort((one, other) => one.entry.serial - other.entry.serial);
    const page = rest.slice(0, count);
    const next = rest.length > count ? String(page.at(-1)?.entry.serial) : "0";
    return [next, page.filter(({ key, entry }) => isLock(entry) && matches(key)).map(({ key }) => key)];
  }

  /** All that a key holds; undefined: there is no such key. */
  dump(key: string): Stored | undefined {
    const value = this.#live(key)?.value;
    const ttlMs = this.pttl(key);
    if (value === undefined) {
      return undefined;
    } else if (typeof value === "string") {
      return { type: "string", value, ttlMs };
    } else if (value instanceof SortedSet) {
      return { type: "zset", value: value.entries(), ttlMs };
    }
    return { type: "hash", value: [...value], ttlMs };
  }

  #requireWrites(): void {
    if (this.isReadOnly) {
      throw new ServerError(readOnly);
    }
  }

  #now(): number {
    return Math.floor(this.#micros() / 1000);
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt !== undefined && entry.expiresAt < this.#now()) {
      this.#entries.delete(key);
      return undefined;
    }
    return entry;
  }

  #hash(key: string): Map<string, string> | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof Map)) {
      throw new ServerError(wrongType);
    }
    return value;
  }

  #sortedSet(key: string): SortedSet | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof SortedSet)) {
      throw new ServerError(wrongType);
    }
    return value;
  }

  #make<T extends SortedSet | Map<string, string>>(key: string, value: T): T {
    this.#entries.set(key, { value, serial: this.#serialOf(key), expiresAt: undefined });
    return value;
  }

  /** A key that is written over keeps its place in a scan. */
  #serialOf(key: string): number {
    const known = this.#live(key)?.serial;
    return known ?? (this.#serial += 1);
  }
}

/** A string, a sorted set whose members are tokens, or a latch. */
function isLock({ value }: Entry): boolean {
  return (
    typeof value === "string" ||
    (value instanceof Map && value.has("latch")) ||
    (value instanceof SortedSet && /^[\da-f]+:[\da-f]+:[a-z][\d/]*:\d+$/i.test(value.first()?.[0] ?? ""))
  );
}
