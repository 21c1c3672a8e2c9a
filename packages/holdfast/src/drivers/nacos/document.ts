import type { HolderInfo } from "../../driver.ts";
import { hash32 } from "../../runtime/random.ts";

export interface Grant extends HolderInfo {
  readonly token: string;
  readonly fencingToken: number;
  readonly ttlMs: number;
  /** Unique for each extension. */
  readonly version: string;
  /** The latest time that the servers may have had at the last extension, ms since 1970; null: unknown. */
  readonly at: number | null;
  /** Like `at`, for the grant; undefined: another version of this driver wrote the grant. */
  readonly since?: number | null;
  /** The driver that wrote the grant last. */
  readonly client: string;
  readonly owner: string;
}

/** A waiter. */
export interface Entry {
  readonly token: string;
  readonly ticket: number;
  readonly owner: string;
}

/** The content of one configuration: everything about one lock. */
export interface LockDocument {
  readonly key: string;
  /** Unique for each write, so that no content is repeated. A repeated content would have a repeated MD5. */
  readonly write: string;
  /** Like {@link Grant.at}, for the last write. */
  readonly at: number | null;
  /** The last fencing token. */
  readonly fencingToken: number;
  /** The last ticket. */
  readonly ticket: number;
  /** Unique for each end of a grant. */
  readonly end: string;
  readonly grant: Grant | null;
  /** In the order of the tickets. */
  readonly queue: readonly Entry[];
  /** The last grants that operators ended. */
  readonly broken: readonly { readonly token: string; readonly reason: string }[];
}

/** The unique ID and the time of a write. */
export interface Stamp {
  readonly id: string;
  readonly at: number | null;
}

/** @param floor all fencing tokens are larger, also after an operator has deleted the configuration of the lock */
export function newDocument(key: string, stamp: Stamp, floor: number): LockDocument {
  const { id, at } = stamp;
  const fencingToken = Math.floor(floor);
  return { key, write: id, at, fencingToken, ticket: 0, end: id, grant: null, queue: [], broken: [] };
}

export function changed(
  document: LockDocument,
  changes: Partial<LockDocument>,
  { id, at }: Stamp,
): LockDocument {
  const end = document.grant && changes.grant === null ? id : document.end;
  return { ...document, ...changes, write: id, at, end };
}

/** The content with ASCII characters only. Its MD5 depends on no encoding, and every database can store it. */
export function encodeDocument(document: LockDocument): string {
  return JSON.stringify(document).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** @returns undefined if another program has written the content */
export function decodeDocument(content: string): LockDocument | undefined {
  try {
    const document = JSON.parse(content) as Partial<LockDocument> | null;
    return typeof document?.key === "string" && Array.isArray(document.queue)
      ? (document as LockDocument)
      : undefined;
  } catch {
    return undefined;
  }
}

const maxEncoded = 150;

/**
 * The `dataId` of a lock. Nacos allows letters, digits and `-_.:`, up to 255 characters. Its database may ignore upper case, and a colon
 * is no part of a file name on Windows. All bytes of the key but `a-z`, `0-9` and `-` are written as `_xx`.
 */
export function dataIdOf(key: string): string {
  const encoded = encodeKey(key);
  return encoded.length <= maxEncoded
    ? `lock.${encoded}`
    : `lock.${encoded.slice(0, maxEncoded)}.${hash32(key)}`;
}

/** A pattern for the `dataId` of all keys with this prefix. Further keys may fit, because `_` stands for any character. */
export function patternOf(prefix: string): string {
  return `lock.${encodeKey(prefix).slice(0, maxEncoded)}*`;
}

function encodeKey(key: string): string {
  let encoded = "";
  for (const byte of Buffer.from(key)) {
    const character = String.fromCharCode(byte);
    encoded += /[a-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, "0")}`;
  }
  return encoded;
}
