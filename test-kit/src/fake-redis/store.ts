import { ServerError, wrongType } from "./reply.ts";
import { SortedSet } from "./sorted-set.ts";

export type Hash = Map<string, string>;
type Value = string | SortedSet | Hash;

/** The complete value of a key, and its remaining ms; -1: no expiry. */
export type Stored =
  | { readonly type: "string"; readonly value: string; readonly ttlMs: number }
  | {
      readonly type: "zset";
      readonly value: readonly (readonly [member: string, score: number])[];
      readonly ttlMs: number;
    }
  | {
      readonly type: "hash";
      readonly value: readonly (readonly [field: string, value: string])[];
      readonly ttlMs: number;
    };

interface Entry {
  readonly value: Value;
  /** The number of the key in the order of creation, which is the order of a scan. */
  readonly serial: number;
  /** The last millisecond of the key; undefined: no expiry. */
  expiresAt: number | undefined;
}

/** The data of one server: strings, sorted sets and hashes that expire. */
export class Store {
  readonly #micros: () => number;
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  /** @param micros returns the server's time */
  constructor(micros: () => number) {
    this.#micros = micros;
  }

  /** The server's time in ms. */
  now(): number {
    return Math.floor(this.#micros() / 1000);
  }

  has(key: string): boolean {
    return this.#live(key) !== undefined;
  }

  typeOf(key: string): Stored["type"] | "none" {
    const value = this.#live(key)?.value;
    if (value === undefined || typeof value === "string") {
      return value === undefined ? "none" : "string";
    }
    return value instanceof SortedSet ? "zset" : "hash";
  }

  string(key: string): string | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && typeof value !== "string") {
      throw new ServerError(wrongType);
    }
    return value;
  }

  hash(key: string): Hash | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof Map)) {
      throw new ServerError(wrongType);
    }
    return value;
  }

  sortedSet(key: string): SortedSet | undefined {
    const value = this.#live(key)?.value;
    if (value !== undefined && !(value instanceof SortedSet)) {
      throw new ServerError(wrongType);
    }
    return value;
  }

  /** Sets the value and the expiry of a key; without `expiresAt`, no expiry. */
  put<T extends Value>(key: string, value: T, expiresAt?: number): T {
    const serial = this.#live(key)?.serial ?? (this.#serial += 1); // an overwritten key keeps its position in a scan
    this.#entries.set(key, { value, serial, expiresAt });
    return value;
  }

  /** Removes a hash or a sorted set that has become empty. */
  dropIfEmpty(key: string, value: SortedSet | Hash | undefined): void {
    if (value?.size === 0) {
      this.#entries.delete(key);
    }
  }

  /** @returns whether the key existed */
  delete(key: string): boolean {
    return this.has(key) && this.#entries.delete(key);
  }

  /** The last millisecond of the key; null: no expiry. Undefined if the key does not exist. */
  endOf(key: string): number | null | undefined {
    const entry = this.#live(key);
    return entry && (entry.expiresAt ?? null);
  }

  /**
   * Sets the last millisecond of a key; null: no expiry. A key whose last millisecond is not in the future is deleted immediately.
   */
  end(key: string, at: number | null): void {
    const entry = this.#live(key);
    if (entry && at !== null && at <= this.now()) {
      this.#entries.delete(key);
    } else if (entry) {
      entry.expiresAt = at ?? undefined;
    }
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.has(key));
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The keys with a larger serial number, in the order of creation. */
  keysAfter(serial: number): { readonly key: string; readonly serial: number }[] {
    return this.keys()
      .map((key) => ({ key, serial: (this.#entries.get(key) as Entry).serial }))
      .filter((found) => found.serial > serial)
      .sort((one, other) => one.serial - other.serial);
  }

  /** All that a key holds; undefined: there is no such key. */
  dump(key: string): Stored | undefined {
    const entry = this.#live(key);
    if (!entry) {
      return undefined;
    }
    const { value, expiresAt } = entry;
    const ttlMs = expiresAt === undefined ? -1 : expiresAt - this.now();
    if (typeof value === "string") {
      return { type: "string", value, ttlMs };
    } else if (value instanceof SortedSet) {
      return { type: "zset", value: value.entries(), ttlMs };
    }
    return { type: "hash", value: [...value], ttlMs };
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt !== undefined && entry.expiresAt < this.now()) {
      this.#entries.delete(key);
      return undefined;
    }
    return entry;
  }
}
