/** The replies of the service that the console reads. Fencing tokens are decimal strings. Times are ms since 1970, durations ms. */

type Kind = "mutex" | "read-write" | "semaphore" | "latch";

export interface Holder {
  /** `unknown` for a holder that is not a Holdfast client. */
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken?: string;
  readonly mode?: "read" | "write";
  readonly permits?: number;
  /** Absent: no TTL, or not known. */
  readonly remainingMs?: number;
  readonly localWaiters?: number;
  /** How long the oldest of them had waited at the holder's last renewal. */
  readonly localWaitMs?: number;
  /** When the grant was given, by the engine's clock. */
  readonly since?: number;
  readonly heldMs?: number;
}

interface Waiter {
  readonly owner: string;
  readonly position: number;
  readonly waitedMs?: number;
}

interface NodeView {
  readonly node: string;
  readonly held: boolean | null;
  readonly owner?: string;
  readonly error?: string;
}

/** `GET /v1/lock`, and each row of `GET /v1/locks` and event of `GET /v1/events`. */
export interface Lock {
  readonly key: string;
  readonly kind: Kind;
  readonly limit: number | null;
  /** The remaining count of a latch. */
  readonly remaining?: number;
  readonly holders: readonly Holder[];
  readonly waiters: readonly Waiter[];
  readonly waiterCount: number;
  readonly oldestWaitMs?: number;
  readonly remainingMs: number | null;
  readonly fencingToken: string | null;
  readonly nodes: readonly NodeView[];
}

export interface LockPage {
  readonly locks: readonly Lock[];
  readonly cursor: string | null;
}

export interface LockEvent {
  readonly type: "snapshot" | "changed" | "gone";
  readonly key: string;
  readonly state: Lock;
}

/** `GET /v1/me` */
export interface Me {
  readonly principal: string;
  readonly authentication: boolean;
  readonly scopes: readonly { readonly scope: string; readonly prefixes: readonly string[] }[];
  readonly readOnly: boolean;
  /** The optional parts of the service: `audit`, `doctor`. Absent: an older service. */
  readonly offers?: readonly string[];
  readonly version?: string;
  readonly engine?: { readonly name: string; readonly guarantee: string };
}

export interface OwnerHold {
  readonly key: string;
  readonly kind: Kind;
  readonly mode?: string;
  readonly fencingToken?: string;
  readonly since?: number;
  readonly heldMs?: number;
  readonly ttlMs?: number;
  /** How long ago the last renewal was. */
  readonly renewedMs?: number;
  readonly marginMs?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly reason?: string;
  readonly localWaiters?: number;
}

/** A row of `GET /v1/owners` and of `GET /v1/processes`. */
export interface Owner {
  readonly owner: string;
  readonly name?: string;
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
  readonly instance?: string | number;
  readonly seenMs?: number;
  readonly lagMs?: number;
  readonly answered: boolean;
  /** The numbers of all holds and waits, because long lists are cut. */
  readonly holdCount?: number;
  readonly waitCount?: number;
  readonly holds: readonly OwnerHold[];
  readonly waits: readonly {
    readonly key: string;
    readonly kind: Kind;
    readonly count: number;
    readonly oldestMs?: number;
  }[];
}

export interface Owners {
  readonly owners: readonly Owner[];
  readonly complete: boolean;
  /** Why the directory is not complete. */
  readonly problem?: string | null;
  readonly asOf: number;
}

export type Broken = boolean | "unknown";

export interface BrokenLocks {
  readonly results: readonly {
    readonly key: string;
    readonly fencingToken: string;
    readonly broken: Broken;
  }[];
}

/** `GET /v1/audit` */
export interface AuditPage {
  readonly records: readonly AuditRecord[];
  readonly cursor: string | null;
}

export interface AuditRecord {
  readonly id: string;
  readonly at: number;
  readonly principal: string;
  readonly action: string;
  readonly key: string;
  readonly fencingToken: string;
  readonly owner?: string;
  readonly reason: string;
  readonly result: "broken" | "unknown";
}

type End = "released" | "expired" | "lost" | "broken" | "unknown";

export interface PastHold {
  readonly key: string;
  readonly owner: string;
  readonly fencingToken?: string;
  readonly since: number;
  /** null: held now. */
  readonly until: number | null;
  readonly end?: End;
  /** Of a broken hold. Absent: not known. */
  readonly break?: { readonly principal: string; readonly reason: string };
  readonly reason?: string;
}

/** The times of a list of observations. */
export interface Observed {
  readonly knownSince: number;
  /** The time of the reply, by the clock of the service. Absent: an older service. */
  readonly asOf?: number;
}

/** `GET /v1/history` */
export interface History extends Observed {
  /** How many holds expired in the last hour, as far as the service has seen. Absent: an older service. */
  readonly lostLastHour?: number;
  readonly holds: readonly PastHold[];
}

/** How long the released holds of a key lasted. */
export interface HoldTimes {
  readonly key: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

interface Quantiles {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface ContendedKey {
  readonly key: string;
  readonly waiting: number;
  readonly oldestMs?: number;
  readonly waits: Quantiles;
  readonly holds: Quantiles;
  /** Waiters per 10 s, for the last 10 minutes. */
  readonly recent: readonly number[];
}

/** `GET /v1/contention` */
export interface Contention extends Observed {
  readonly keys: readonly ContendedKey[];
}

/** `GET /v1/doctor` */
export interface Diagnosis {
  readonly findings: readonly Finding[];
}

export interface Finding {
  readonly id: string;
  readonly level: string;
  readonly node?: string;
  readonly observed: string;
  readonly why?: string;
  readonly impact?: string;
  readonly advice?: string;
  readonly fix?: string;
  readonly command?: string;
  readonly doc?: string;
}

/** `GET /v1/nodes` */
export interface Nodes {
  readonly guarantee: string;
  readonly nodes: readonly Node[];
}

export interface Node {
  readonly node: string;
  readonly reachable: boolean;
  readonly latencyMs: number | null;
  readonly version: string | null;
  readonly role: string | null;
  readonly replication: {
    readonly offset: number;
    readonly replicas: readonly {
      readonly address: string;
      readonly isOnline: boolean;
      readonly lagBytes: number;
    }[];
    readonly isLinkUp: boolean | null;
    readonly goodReplicas: number | null;
  } | null;
  readonly runId: string | null;
  readonly uptimeMs: number | null;
  readonly clockOffsetMs: number | null;
  readonly cluster?: {
    readonly state: string | null;
    readonly slots: number;
    readonly replicas: readonly string[];
  };
  readonly notifications: "verified" | "unverified" | "unavailable";
  readonly quarantine: { readonly reason: string; readonly remainingMs: number | null } | null;
  readonly error: string | null;
}

/** A problem of RFC 9457. */
export interface Problem {
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly fencingToken?: string | null;
}
