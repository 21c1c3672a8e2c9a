import type { PollLimits } from "../../store/poll-delay.ts";
import type { LockKind } from "../../../lock-state.ts";
import type { Script } from "./script.ts";

/** How another library stores its locks. */
export interface LayoutRules {
  readonly name: string;
  /** The name of foreign holders in `inspect`. */
  readonly library: string;
  readonly script: Script;
  readonly kinds: readonly LockKind[];
  /** Why the layout has no locks of a kind. */
  readonly unsupported: Readonly<Partial<Record<LockKind, string>>>;
  /** Undefined: the option is required. */
  readonly defaultPrefix: string | undefined;
  /** How often waiters poll. @defaultValue as with an engine in the same network */
  readonly pollLimits?: PollLimits;
  /** The type of the lock key in Redis. */
  readonly type: "hash" | "string";
  /** The longest TTL of a read-write lock, ms. @defaultValue no limit */
  readonly maxSharedTtlMs?: number;
  /** Checks the whole prefix, with the prefix of the client. @throws {TypeError | RangeError} */
  readonly checkPrefix?: (prefix: string) => void;
  /** A channel on which the library publishes the lock keys of all released locks. */
  readonly commonChannel?: (prefix: string) => string;
  /** @param wallMs the present time, ms since 1970 */
  readonly partsOf: (lock: string, prefix: string, wallMs: number) => LayoutParts;
}

/** The other names of one lock. */
export interface LayoutParts {
  /** The key of the fencing counter. @defaultValue the counter of the server */
  readonly counter?: string;
  /** The further keys of the script. */
  readonly keys: readonly string[];
  /** The two channels of the script; empty: none. */
  readonly channels: readonly [string, string];
  /** The last argument of the script that the layout determines. */
  readonly detail: string;
  /** The channel on which the library announces a release; undefined: it announces none. */
  readonly wakeChannel?: (isReadWrite: boolean) => string;
}

/** The reasons of a library that has mutexes only. */
export function onlyMutexes(library: string): LayoutRules["unsupported"] {
  const reason = `${library} has mutexes only`;
  return { "read-write": reason, semaphore: reason, latch: reason };
}
