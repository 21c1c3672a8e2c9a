import { fromBase64Url, toBase64Url } from "../../runtime/text.ts";
import type { AuditRecord } from "../../operator/audit.ts";
import type { LockErrorCode, LossReason, NodeVote, Outcome } from "../../errors.ts";
import type { HeldKind, Holder, LockEvent, LockStateData, NodeState, NodeView } from "../../lock-state.ts";

/**
 * The JSON of requests and replies between the lock service and its clients. Fencing tokens are decimal strings, because they can
 * exceed 2^53. Times are milliseconds.
 */

/** How a lease shares its key: exclusively, as a reader, as the writer, or with permits of a semaphore. */
export type WireMode = "exclusive" | "read" | "write" | "semaphore";

/** The metadata of a lease, which `inspect` reports. */
interface WireHolderInfo {
  readonly owner?: WireOwner | undefined;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** `POST /v1/leases` */
export interface WireAcquire extends WireHolderInfo {
  readonly key?: string | undefined;
  /** Instead of `key`: acquires all of these keys or none. */
  readonly keys?: readonly string[] | undefined;
  readonly mode?: WireMode | undefined;
  /** For a semaphore only, as `permits`. */
  readonly limit?: number | undefined;
  readonly permits?: number | undefined;
  readonly ttlMs?: number | undefined;
  /** 0: try once. @defaultValue 10 000 */
  readonly waitMs?: number | undefined;
  /** The validity of a grant after a wait, until its first renewal. It is short, so that an undelivered grant expires soon. */
  readonly claimMs?: number | undefined;
  readonly attemptId?: string | undefined;
}

export type WireOwner =
  string | { readonly name: string; readonly host?: string | undefined; readonly pid?: number | undefined };

/** A lease. */
export interface WireLease {
  /** A secret: any client with this id can use the lease. */
  readonly leaseId: string;
  readonly key: string;
  readonly keys: readonly string[];
  /** The fencing token of `key`. */
  readonly fencingToken: string;
  readonly fencingTokens: Readonly<Record<string, string>>;
  readonly ttlMs: number;
  /**
   * The remaining validity, ms, from `queuedMs` after the sending of the request. The travel time of the reply is already deducted. 0: the
   * engine holds the lease, and does not know its remaining time. A renewal states it.
   */
  readonly validMs: number;
  /** By the service's wall clock, for display only. */
  readonly expiresAt: string;
  /** How long the request waited for the lock. */
  readonly queuedMs: number;
  /** How far exclusion reaches. */
  readonly guarantee: string;
}

/** `POST /v1/leases/{leaseId}/renew` */
export interface WireRenew extends WireHolderInfo {
  readonly ttlMs?: number | undefined;
}

/** The reply to `DELETE /v1/leases/{leaseId}`, and to the downgrade of a writer. */
export interface WireReleased {
  /** Whether the lease was still held. */
  readonly released: boolean;
}

/** `T` with its fencing token as text. */
type WithTextToken<T> = Omit<T, "fencingToken"> & { readonly fencingToken?: string };

export type WireHolder = WithTextToken<Holder>;

/** The state of one lock. */
export interface WireLock extends Omit<LockStateData, "limit" | "holders" | "fencingToken" | "nodes"> {
  /** null: no limit. */
  readonly limit: number | null;
  readonly holders: readonly WireHolder[];
  readonly fencingToken: string | null;
  readonly nodes: readonly WithTextToken<NodeView>[];
}

/** `GET /v1/locks` */
export interface WireLocks {
  readonly locks: readonly WireLock[];
  readonly cursor: string | null;
}

/** `GET /v1/audit` */
export interface WireAudit {
  readonly records: readonly (Omit<AuditRecord, "by" | "fencingToken"> & {
    /** The operator. */
    readonly principal: string;
    readonly fencingToken: string;
  })[];
  readonly cursor: string | null;
}

/** `GET /v1/events` */
export interface WireEvent {
  readonly type: LockEvent["type"];
  readonly key: string;
  readonly state: WireLock;
}

/** `GET /v1/nodes` */
export interface WireNodes {
  readonly guarantee: string;
  readonly nodes: readonly NodeState[];
}

/** Codes of the service only. */
export type ServiceCode =
  "invalid" | "unauthenticated" | "forbidden" | "not-found" | "fence-mismatch" | "rate-limited" | "draining";

/** The body of every error reply: a problem of RFC 9457. */
export interface WireProblem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: LockErrorCode | ServiceCode;
  readonly key?: string;
  readonly retryable: boolean;
  /** Whether the failed request had an effect. */
  readonly outcome: Outcome;
  readonly retryAfterMs?: number;
  /** With code `wait-timeout`, as `position`. */
  readonly holder?: WireHolder;
  readonly position?: number;
  /** With code `lease-lost`, as `lostAt`. */
  readonly reason?: LossReason;
  readonly lostAt?: number;
  /** With code `quorum-not-reached`. */
  readonly votes?: readonly NodeVote[];
  /** With code `fence-mismatch`: the present fencing token. */
  readonly fencingToken?: string | null;
}

/** The content of a lease id. */
export interface LeaseParts {
  readonly ttlMs: number;
  readonly grants: readonly {
    readonly key: string;
    readonly token: string;
    readonly fencingToken: string;
    /** Absent: a mutex. */
    readonly kind?: Exclude<HeldKind, "mutex"> | undefined;
  }[];
}

const version = "1";
const kindMarks = { "read-write": "r", semaphore: "s" } as const;

/**
 * Encodes a lease id. The id contains all facts about the lease, so no instance of the service has to remember the lease. The keys
 * follow the secret, because a driver knows the key and stores only the secret.
 */
export function leaseIdOf({ ttlMs, grants }: LeaseParts): string {
  const secret = [
    ttlMs,
    ...grants.map(({ token, fencingToken, kind }) => [token, fencingToken, ...markOf(kind)]),
  ];
  const keys = grants.map(({ key }) => key);
  return withKeys(`${version}.${encoded(secret)}`, keys);
}

/** The lease id made of a secret and its keys. */
export function withKeys(secret: string, keys: readonly string[]): string {
  return `${secret}.${encoded(keys)}`;
}

/** A lease id without its keys. */
export function secretOf(leaseId: string): string {
  return leaseId.slice(0, leaseId.lastIndexOf("."));
}

/** @returns undefined if the text is not a lease id */
export function readLeaseId(leaseId: string): LeaseParts | undefined {
  const [idVersion, secret, keys, ...more] = leaseId.split(".");
  if (idVersion !== version || secret === undefined || keys === undefined || more.length > 0) {
    return undefined;
  }
  const [ttlMs, ...pairs] = decoded(secret);
  const names = decoded(keys);
  const isWhole =
    Number.isInteger(ttlMs) &&
    pairs.length > 0 &&
    pairs.length === names.length &&
    names.every((key) => typeof key === "string") &&
    pairs.every(isPair);
  return isWhole
    ? {
        ttlMs: ttlMs as number,
        grants: (pairs as Pair[]).map(([token, fencingToken, mark], index) => ({
          key: names[index] as string,
          token,
          fencingToken,
          ...(mark !== undefined && { kind: mark === kindMarks.semaphore ? "semaphore" : "read-write" }),
        })),
      }
    : undefined;
}

type Pair = readonly [token: string, fencingToken: string, mark?: string];

function markOf(kind: LeaseParts["grants"][number]["kind"]): string[] {
  return kind === undefined ? [] : [kindMarks[kind]];
}

/** A lease id may be forged, so only text with the shape of a token reaches the engine. */
function isPair(value: unknown): value is Pair {
  const [token, fencingToken, mark, ...more] = (Array.isArray(value) ? value : []) as unknown[];
  const isKnown = mark === undefined || fits(mark, /^[rs]$/);
  return (
    more.length === 0 && isKnown && fits(token, /^[\x21-\x7e]{1,512}$/) && fits(fencingToken, /^\d{1,39}$/)
  );
}

function fits(value: unknown, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}

function encoded(value: readonly unknown[]): string {
  return toBase64Url(JSON.stringify(value));
}

function decoded(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(fromBase64Url(text));
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
