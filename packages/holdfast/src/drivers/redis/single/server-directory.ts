import { invalidCursor } from "../../../option-checks.ts";
import type { NodeState } from "../../../lock-state.ts";
import type { KeySpace, LockKeys } from "../protocol/keys.ts";
import { callOfServer } from "../protocol/operation.ts";
import type { BatcherSettings } from "../server/batch.ts";
import type { RedisServer } from "../server/server.ts";
import type { DirectoryLink } from "../processes/directory.ts";
import { executeSingleScript, processesScript, scanScript } from "../protocol/scripts.generated.ts";

/** How long one page of a list may take, ms, because a call with a rare prefix must not scan all keys. */
export const pageBudgetMs = 250;

/** One page of the keys that may be locks. */
export interface Page {
  readonly locks: readonly string[];
  /** The cursor of the next page. Null after the last page. */
  readonly cursor: string | null;
}

/** The records of one server, or of one slot of a cluster. */
export interface StoredAudit {
  readonly slot?: number;
  readonly members: readonly unknown[];
}

/** Leads from a lock to its server, and has all servers. */
export interface ServerDirectory {
  serverFor(keys: LockKeys): RedisServer;
  /** Sets the client's description for `inspect`: field, value, ... */
  setClientInfo(info: readonly string[]): void;
  /** Changes the client ID. */
  rename(clientId: string): void;
  /** Checks that one server can have all keys of the lock. @throws {RangeError} */
  check(keys: LockKeys, key: string): void;
  /** The directory of processes in the sorted set with this key. */
  link(key: string): DirectoryLink;
  scan(cursor: string | null, pattern: string, limit: number): Promise<Page>;
  states(): Promise<NodeState[]>;
  /** The slot of a cluster that has the audit of the lock; undefined: all locks share one audit. */
  auditSlotOf(keys: LockKeys): { readonly slot: number; readonly tag: string } | undefined;
  /**
   * Reads the audits, each with its oldest record first.
   * @param keepFrom in a cluster, records with a smaller id are removed; "0": no record is removed
   */
  readAudits(keySpace: KeySpace, keepFrom: string): Promise<StoredAudit[]>;
  close(): void;
}

/** The calls of a server that decides alone. @param counter the key of its fencing counter */
export function singleServerBatches(counter: string, queueBound: number, timeoutMs: number): BatcherSettings {
  return {
    script: executeSingleScript,
    encode: (operations) => callOfServer(operations, counter, String(queueBound)),
    timeoutMs,
    isQuorumNode: false,
  };
}

/** The directory of a single server, which has every lock. */
export class SingleServer implements ServerDirectory {
  readonly #server: RedisServer;

  constructor(server: RedisServer) {
    this.#server = server;
  }

  serverFor(): RedisServer {
    return this.#server;
  }

  setClientInfo(info: readonly string[]): void {
    this.#server.setClientInfo(info);
  }

  rename(clientId: string): void {
    this.#server.rename(clientId);
  }

  check(): void {
    // One server can have every key.
  }

  link(key: string): DirectoryLink {
    const server = this.#server;
    return { server, countsReceivers: true, run: (args) => server.run(processesScript, [key], args) };
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

  auditSlotOf(): undefined {
    return undefined;
  }

  async readAudits(keySpace: KeySpace): Promise<StoredAudit[]> {
    return [
      { members: (await this.#server.command("ZRANGE", [keySpace.auditKey(), "0", "-1"])) as unknown[] },
    ];
  }

  close(): void {
    this.#server.close();
  }
}

/** The reply of the script `scan`. */
export function parsePage(answer: unknown): [next: string, found: string[]] {
  const [next, found] = answer as [unknown, unknown[]];
  return [String(next), found.map(String)];
}

/**
 * Checks a cursor of the caller.
 * @param form the form of the whole cursor. Its first group is the cursor of `SCAN`, an integer of 64 bits.
 * @throws {RangeError} for a cursor that no page of this engine has
 */
export function checkCursor(cursor: string | null, form: RegExp): void {
  const at = form.exec(cursor ?? "")?.[1];
  if (cursor !== null && (at === undefined || BigInt(at) >= 2n ** 64n)) {
    throw invalidCursor(cursor);
  }
}
