import type { RedisOptions } from "holdfast/redis";

/** The settings of the worker of this library, which are JSON. */
export interface HoldfastSettings {
  readonly options: RedisOptions;
  /** The keys of a lock, with `{}` for the name. Without it, the key is the name. */
  readonly keys?: readonly string[];
  /** Whether an acquire is repeated while the key has the value of another kind. */
  readonly retriesMismatch?: boolean;
}
