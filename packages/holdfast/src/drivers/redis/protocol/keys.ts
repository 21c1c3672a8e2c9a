import { invalidKey } from "../../../errors.ts";
import { invalidValue } from "../../../option-checks.ts";

/** The keys of one lock: the lock key, its queue, its info, and its fence on a node of a quorum. */
export type LockKeys = readonly [lock: string, queue: string, info: string, ...fence: string[]];

const reservedPrefix = "holdfast:";
/** More keys would outlive the collections of young objects, and cost more than deriving the keys again. */
const maxRecent = 128;

/**
 * Derives all keys of a lock. Derived keys have the hash slot of the lock key. They are in a reserved name space, because a lock key must
 * never equal a derived key of another lock.
 */
export class KeySpace {
  readonly #prefix: string;
  readonly #hasFences: boolean;
  /** The keys of recently used locks. */
  #recent = new Map<string, LockKeys>();

  /** @param hasFences whether each lock has its own fencing counter, as on the nodes of a quorum */
  constructor(clientPrefix: string, prefix: string, hasFences = false) {
    this.#hasFences = hasFences;
    this.#prefix = clientPrefix + prefix;
    if (isReserved(this.#prefix)) {
      throw invalidValue("prefix", `not to begin with "${reservedPrefix}", which is reserved`, this.#prefix);
    }
  }

  /** @throws {RangeError} for a key in the reserved name space */
  keysOf(key: string): LockKeys {
    const known = this.#recent.get(key);
    if (known) {
      return known;
    }
    const keys = this.#makeKeys(key);
    if (this.#recent.size >= maxRecent) {
      this.#recent = new Map(); // `clear` would link the old table to the new one, and retain the entries of both
    }
    this.#recent.set(key, keys);
    return keys;
  }

  #makeKeys(key: string): LockKeys {
    const lock = this.#prefix + key;
    if (isReserved(lock)) {
      throw invalidKey(`The key "${key}" must not begin with "${reservedPrefix}", which is reserved`, key);
    }
    const tagged = withHashTag(lock);
    const [queue, info] = [`${reservedPrefix}queue:${tagged}`, `${reservedPrefix}info:${tagged}`];
    return this.#hasFences ? [lock, queue, info, `${reservedPrefix}fence:${tagged}`] : [lock, queue, info];
  }

  /** The sorted set of the clients with the prefix of this key space. */
  get directoryKey(): string {
    return `${clientKey("of")}:${this.#prefix}`;
  }

  /**
   * The audit of the breaks of locks with this prefix.
   * @param tag the hash tag of a cluster's slot, because each slot has its own audit
   */
  auditKey(tag?: string): string {
    return `${reservedPrefix}audit:${tag === undefined ? "" : `{${tag}}:`}${this.#prefix}`;
  }

  /** The prefix of all lock keys. */
  get prefix(): string {
    return this.#prefix;
  }

  /** The caller's key for a lock key; undefined if the key has another prefix, or belongs to this library. */
  keyOf(lock: string): string | undefined {
    return lock.startsWith(this.#prefix) && !isReserved(lock) ? lock.slice(this.#prefix.length) : undefined;
  }

  /** The SCAN pattern for locks whose keys begin with `prefix`. */
  patternOf(prefix: string): string {
    return `${(this.#prefix + prefix).replace(/[\\*?[\]]/g, "\\$&")}*`;
  }
}

/** Whether a key is in the reserved name space, which contains no lock. */
export function isReserved(key: string): boolean {
  return key.startsWith(reservedPrefix);
}

export function clientKey(clientId: string): string {
  return `${reservedPrefix}client:${clientId}`;
}

/** @param tag the hash tag of a cluster's slot; the channel is for grants in that slot */
export function channelOf(clientId: string, tag?: string): string {
  return `${reservedPrefix}grants:${tag === undefined ? "" : `{${tag}}`}${clientId}`;
}

/**
 * The fencing counter of a server.
 * @param tag the hash tag of a cluster's slot, because each slot has its own counter
 */
export function counterKey(tag?: string): string {
  return `${reservedPrefix}fence${tag === undefined ? "" : `:{${tag}}`}`;
}

/** A key that is never written. It selects a slot for a script without a lock. */
export function slotKey(tag: string): string {
  return `${reservedPrefix}slot:{${tag}}`;
}

/**
 * A text with the hash slot of the lock key. A key without a hash tag by Redis' rule becomes the tag. A key with a hash tag gets a colon,
 * because otherwise the keys `a` and `{a}` would share a queue.
 */
export function withHashTag(lock: string): string {
  const open = lock.indexOf("{");
  const close = open < 0 ? -1 : lock.indexOf("}", open + 1);
  return close > open + 1 ? `${lock}:` : `{${lock}}`;
}
