import { Redis } from "ioredis";

/**
 * The client that every contestant gets. Untyped, because a peer's types may come from another version of ioredis in this
 * workspace than ours, and the two do not fit, although the clients do.
 */
export function connect(port: number): any {
  return new Redis(port, "127.0.0.1");
}
