import { invalidValue } from "../../../option-checks.ts";

/** The keys of one lock: K, its queue, its info; on a node of a quorum its fence as well. */
export type LockKeys = readonly [lock: string, queue: string, info: string, ...fence: string[]];

const reservedPrefix = "holdfast:";
const maxRecent = 1_024;

/**
 * The only maker of keys. Derived keys share K's hash slot and have a name space of their own, which no lock may enter:
 * no key of a user can be the derived key of another.
 */
export class KeySpace {
  readonly #prefix: string;
  readonly #hasFences: boolean;
  /** The keys of locks that were asked for lately. */
  readonly #recent = new Map<string, LockKeys>();

  /** @param hasFences whether each lock has a fencing counter of its own, as on the nodes of a quorum */
  constructor(clientPrefix: string, prefix: string, hasFences = false) {
    this.#hasFences = hasFences;
    this.#prefix = clientPrefix + prefix;
    if (isReserved(this.#prefix)) {
      throw invalidValue("prefix", `not to begin with "${reservedPrefix}", which is ours`, this.#prefix);
    }
  }

  /** @throws {RangeError} for a key that would stand in our own name space */
  keysOf(key: string): LockKeys {
    const known = this.#recent.get(key);
    if (known) {
      return known;
    }
    const keys = this.#makeKeys(key);
    if (this.#recent.size >= maxRecent) {
      this.#recent.clear();
    }
    this.#recent.set(key, keys);
    return keys;
  }

  #makeKeys(key: string): LockKeys {
    const lock = this.#prefix + key;
    if (isReserved(lock)) {
      throw invalidValue("key", `not to begin with "${reservedPrefix}", which is ours`, key);
    }
    const shared = withHashTag(lock);
    const [queue, info] = [`${reservedPrefix}queue:${shared}`, `${reservedPrefix}info:${shared}`];
    return this.#hasFences ? [lock, queue, info, `${reservedPrefix}fence:${shared}`] : [lock, queue, info];
  }

  /** The key of a lock as the caller knows it; undefined for a lock of others. */
  keyOf(lock: string): string | undefined {
    return lock.startsWith(this.#prefix) ? lock.slice(this.#prefix.length) : undefined;
  }

  /** The pattern that finds the locks whose keys begin with `prefix`. */
  patternOf(prefix: string): string {
    return `${(this.#prefix + prefix).replace(/[\\*?[\]]/g, "\\$&")}*`;
  }
}

/** Whether a key is in the library's own name space, where no lock can be. */
export function isReserved(key: string): boolean {
  return key.startsWith(reservedPrefix);
}

export function clientKey(clientId: string): string {
  return `${reservedPrefix}client:${clientId}`;
}

/** @param tag the hash tag that leads to a slot: of the channel for grants in that slot of a cluster */
export function channelOf(clientId: string, tag?: string): string {
  return `${reservedPrefix}grants:${tag === undefined ? "" : `{${tag}}`}${clientId}`;
}

/**
 * The fencing counter of a server.
 * @param tag the hash tag that leads to a slot of a cluster, each of which has a counter of its own
 */
export function counterKey(tag?: string): string {
  return `${reservedPrefix}fence${tag === undefined ? "" : `:{${tag}}`}`;
}

/** Never written: names a slot to a script that is about no lock. */
export function slotKey(tag: string): string {
  return `${reservedPrefix}slot:{${tag}}`;
}

/**
 * K if it has a hash tag by Redis' own rule, else K as a hash tag. What has a tag of its own gets a mark behind it:
 * else the keys `a` and `{a}` would share a queue.
 */
function withHashTag(lock: string): string {
  const open = lock.indexOf("{");
  const close = open < 0 ? -1 : lock.indexOf("}", open + 1);
  return close > open + 1 ? `${lock}:` : `{${lock}}`;
}
