import type { RedisOptions } from "holdfast/redis";

/** The settings of the worker of this library, which are JSON. */
export interface HoldfastSettings {
  readonly options: Omit<RedisOptions, "layout">;
  /** The name of a layout of `holdfast/redis/layouts`. */
  readonly layout?: string;
  /** The side of a read-write lock. Without it, the lock is a mutex. */
  readonly mode?: "read" | "write";
  /** The keys of a lock, with `{}` for the name. Without it, the key is the name. */
  readonly keys?: readonly string[];
  /** Whether an acquire is repeated while the key has the value of another kind. */
  readonly retriesMismatch?: boolean;
}
