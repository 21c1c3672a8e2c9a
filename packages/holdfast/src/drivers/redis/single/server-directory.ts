import { invalidCursor } from "../../../option-checks.ts";
import type { NodeState } from "../../../lock-state.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "../server/server.ts";
import { scanScript } from "../protocol/scripts.generated.ts";

/** How long one page of a list may search before it ends, ms: a narrow prefix must not go through all keys in one call. */
export const pageBudgetMs = 250;

/** One step through the keys that may be locks. */
export interface Page {
  readonly locks: readonly string[];
  /** Where to go on; null: that was all. */
  readonly cursor: string | null;
}

/** Leads from a lock to the server that has it, and knows all servers. */
export interface ServerDirectory {
  serverFor(keys: LockKeys): RedisServer;
  /** What `inspect` tells of us: field, value, ... */
  setClientInfo(info: readonly string[]): void;
  /** We have another client id from now on. */
  rename(clientId: string): void;
  /** Refuses a lock whose keys one server cannot have. @throws {RangeError} */
  check(keys: LockKeys, key: string): void;
  /** Whether one script may take these locks. */
  canAcquireMany(locks: readonly LockKeys[]): boolean;
  scan(cursor: string | null, pattern: string, limit: number): Promise<Page>;
  states(): Promise<NodeState[]>;
  close(): void;
}

/** Of one server: it has every lock. */
export class SingleServer implements ServerDirectory {
  readonly #server: RedisServer;

  constructor(server: RedisServer) {
    this.#server = server;
  }

  serverFor(): RedisServer {
    return this.#server;
  }

  setClientInfo(about: readonly string[]): void {
    this.#server.setClientInfo(about);
  }

  rename(clientId: string): void {
    this.#server.rename(clientId);
  }

  check(): void {
    // Nothing is refused.
  }

  canAcquireMany(): boolean {
    return true;
  }

  async scan(cursor: string | null, pattern: string, limit: number): Promise<Page> {
    checkCursor(cursor, /^(\d{1,20})$/);
    const [next, found] = parsePage(
      await this.#server.run(scanScript, [], [cursor ?? "0", pattern, String(limit)]),
    );
    return { locks: found, cursor: next === "0" ? null : next };
  }

  async states(): Promise<NodeState[]> {
    return [await this.#server.state()];
  }

  close(): void {
    this.#server.close();
  }
}

/** What the script `scan` answered. */
export function parsePage(answer: unknown): [next: string, found: string[]] {
  const [next, found] = answer as [unknown, unknown[]];
  return [String(next), found.map(String)];
}

/**
 * `form`: of the whole cursor; its first group is the cursor of SCAN, an integer of 64 bits.
 * @throws {RangeError} for a cursor that no page of this engine has
 */
export function checkCursor(cursor: string | null, form: RegExp): void {
  const at = form.exec(cursor ?? "")?.[1];
  if (cursor !== null && (at === undefined || BigInt(at) >= 2n ** 64n)) {
    throw invalidCursor(cursor);
  }
}
