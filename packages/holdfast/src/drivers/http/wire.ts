import type { LockErrorCode, LossReason, NodeVote, Outcome } from "../../errors.ts";
import type { Holder, LockEvent, LockStateData, NodeState, NodeView } from "../../lock-state.ts";

/**
 * What travels between the lock service and its clients, as JSON. Numbers of fencing are decimal strings, as they pass 2^53; times
 * are milliseconds.
 */

/** How a lease shares its key: for itself alone, as a reader or the writer, or with some permits of a semaphore. */
export type WireMode = "exclusive" | "read" | "write" | "semaphore";

/** What is told of a lease to whoever looks. */
interface WireHolderInfo {
  readonly owner?: WireOwner | undefined;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** `POST /v1/leases` */
export interface WireAcquire extends WireHolderInfo {
  readonly key?: string | undefined;
  /** Instead of `key`: every one of them or none. */
  readonly keys?: readonly string[] | undefined;
  readonly mode?: WireMode | undefined;
  /** Of a semaphore. */
  readonly limit?: number | undefined;
  readonly permits?: number | undefined;
  readonly ttlMs?: number | undefined;
  /** 0: ask once. */
  readonly waitMs?: number | undefined;
  /** A grant that comes after a wait is for this long only, until it is renewed: of one that nobody received little is left. */
  readonly claimMs?: number | undefined;
  readonly attemptId?: string | undefined;
}

export type WireOwner =
  string | { readonly name: string; readonly host?: string | undefined; readonly pid?: number | undefined };

/** A lease. */
export interface WireLease {
  /** A secret: who has it, has the lease. */
  readonly leaseId: string;
  readonly key: string;
  readonly keys: readonly string[];
  /** Of `key`. */
  readonly fencingToken: string;
  readonly fencingTokens: Readonly<Record<string, string>>;
  readonly ttlMs: number;
  /** What is left of it for certain. It counts from `queuedMs` after the question was sent, so that the way of the answer is no part. */
  readonly validMs: number;
  /** By the service's wall clock, for people. */
  readonly expiresAt: string;
  /** How long it was waited for. */
  readonly queuedMs: number;
  /** How far exclusion reaches. */
  readonly guarantee: string;
}

/** `POST /v1/leases/{leaseId}/renew` */
export interface WireRenew extends WireHolderInfo {
  readonly ttlMs?: number | undefined;
}

/** `DELETE /v1/leases/{leaseId}`, and the downgrade of a writer. */
export interface WireReleased {
  /** Whether it was still held. */
  readonly released: boolean;
}

/** The same, with its fencing token as text. */
type WithTextToken<T> = Omit<T, "fencingToken"> & { readonly fencingToken?: string };

export type WireHolder = WithTextToken<Holder>;

/** What is known of one lock. */
export interface WireLock extends Omit<LockStateData, "limit" | "holders" | "fencingToken" | "nodes"> {
  /** null: as many as there are. */
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

/** Codes that only the service has. */
export type ServiceCode =
  "invalid" | "unauthenticated" | "forbidden" | "not-found" | "fence-mismatch" | "rate-limited" | "draining";

/** What every refusal is: a problem of RFC 9457. */
export interface WireProblem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: LockErrorCode | ServiceCode;
  readonly key?: string;
  readonly retryable: boolean;
  /** What the request may have left behind. */
  readonly outcome: Outcome;
  readonly retryAfterMs?: number;
  /** Of `wait-timeout`. */
  readonly holder?: WireHolder;
  readonly position?: number;
  /** Of `lease-lost`. */
  readonly reason?: LossReason;
  readonly lostAt?: number;
  /** Of `quorum-not-reached`. */
  readonly votes?: readonly NodeVote[];
  /** Of `fence-mismatch`: the present one. */
  readonly fencingToken?: string | null;
}

/** What a lease id says. */
export interface LeaseParts {
  readonly ttlMs: number;
  readonly grants: readonly { readonly key: string; readonly token: string; readonly fencingToken: string }[];
}

const version = "1";

/**
 * A lease id says all that any instance of the service needs to know, so none has to remember it. Its keys stand behind the
 * secret: a driver, which knows the key, keeps the secret alone.
 */
export function leaseIdOf({ ttlMs, grants }: LeaseParts): string {
  const secret = [ttlMs, ...grants.map(({ token, fencingToken }) => [token, fencingToken])];
  const keys = grants.map(({ key }) => key);
  return withKeys(`${version}.${encoded(secret)}`, keys);
}

/** The lease id of a secret and the keys that it is for. */
export function withKeys(secret: string, keys: readonly string[]): string {
  return `${secret}.${encoded(keys)}`;
}

/** A lease id without its keys. */
export function secretOf(leaseId: string): string {
  return leaseId.slice(0, leaseId.lastIndexOf("."));
}

/** @returns undefined where it is none */
export function readLeaseId(leaseId: string): LeaseParts | undefined {
  const [given, secret, keys, ...more] = leaseId.split(".");
  if (given !== version || secret === undefined || keys === undefined || more.length > 0) {
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
        grants: (pairs as Pair[]).map(([token, fencingToken], index) => ({
          key: names[index] as string,
          token,
          fencingToken,
        })),
      }
    : undefined;
}

type Pair = readonly [token: string, fencingToken: string];

/** Whoever made it up: nothing gets to an engine that is no token. */
function isPair(value: unknown): value is Pair {
  const [token, fencingToken, ...more] = (Array.isArray(value) ? value : []) as unknown[];
  return more.length === 0 && fits(token, /^[\x21-\x7e]{1,512}$/) && fits(fencingToken, /^\d{1,39}$/);
}

function fits(value: unknown, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}

function encoded(value: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decoded(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
