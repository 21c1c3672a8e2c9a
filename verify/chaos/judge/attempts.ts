import type { LockKind } from "../run/lock.ts";
import type {
  RequestKind,
  CoordinatorRecord,
  VoteCount,
  Failover,
  LatchRequest,
  Instant,
  Phase,
} from "./history.ts";
import type { Plan } from "../plan/plan.ts";

/** One request for a key and its results: the history by lease instead of by time. A request for several keys has one entry for each key. */
export interface AttemptHistory {
  readonly process: string;
  readonly requestId: number;
  readonly key: string;
  /** The index of `key` in the list of keys that the request named. */
  readonly keyIndex: number;
  readonly lockKind: LockKind;
  /** The permits of a semaphore, and 1 for other kinds. */
  readonly permits: number;
  readonly reentrantHold: string | undefined;
  readonly kind: RequestKind;
  readonly waitMs: number;
  readonly attemptId: string | undefined;
  readonly requestedAt: Instant;
  grantedAt: Instant | undefined;
  token: bigint;
  /** The latest end of validity that the holder knew. */
  validUntil: Instant;
  refusedAt: Instant | undefined;
  refusal: string | undefined;
  lostAt: Instant | undefined;
  lossReason: string | undefined;
  unreportedAt: Instant | undefined;
  releasingAt: Instant | undefined;
  releasedAt: Instant | undefined;
  releaseAnswer: string | undefined;
  transferredAt: Instant | undefined;
  downgradedAt: Instant | undefined;
}

/** A request that led to a lease. */
export type GrantedAttempt = AttemptHistory & { grantedAt: Instant };

/** A call of a latch, and its result. */
export interface LatchCall extends LatchRequest {
  readonly process: string;
  readonly call: number;
  readonly requestedAt: Instant;
  settledAt?: Instant;
  /** The remaining count in the reply. */
  remaining?: number;
  /** The error code of a refused call. */
  code?: string;
}

export interface ProcessHistory {
  readonly name: string;
  openedAt: Instant;
  handover: boolean;
  killedAt: Instant | undefined;
  crashed: { readonly at: Instant; readonly how: string } | undefined;
  closedAt: Instant | undefined;
  readonly stalls: { readonly from: Instant; readonly to: Instant }[];
  readonly memory: { readonly at: Instant; readonly bytes: number }[];
  readonly unhandledErrors: { readonly at: Instant; readonly error: string }[];
}

/** The votes of a majority that confirmed a lock for a process. */
export interface MajorityConfirmation extends VoteCount {
  readonly process: string;
  readonly at: Instant;
}

/** The votes of a majority that granted a lock. */
export interface MajorityGrant extends MajorityConfirmation {
  readonly token: bigint;
  readonly rounds: number;
}

/** One run of a server: from one start to the next. */
export interface ServerRun {
  readonly node: number;
  readonly name: string;
  /** The run did not start before this moment. */
  readonly since: Instant;
  /** The time at which the run was killed. */
  to: Instant;
  /** Every write is on disk before its reply, from the start of the run on. */
  readonly durable: boolean;
  /** The run before, if this run has all its grants and is durable too. */
  readonly earlier: ServerRun | undefined;
}

interface FaultInterval {
  readonly faultId: number;
  readonly kind: string;
  readonly target: string;
  readonly from: Instant;
  to: Instant;
}

/** An operator's break, from its start on. */
export interface Break {
  readonly at: Instant;
  readonly process: string;
  readonly key: string;
  readonly token: bigint;
  /** When the reply confirmed that the break ended the current grant. It is undefined without such a reply. */
  confirmedAt: Instant | undefined;
}

interface PhaseInterval {
  readonly phase: Phase;
  readonly round: number;
  readonly from: Instant;
  to: Instant;
}

/** The events at the resource for one key. */
export interface ResourceHistory {
  readonly key: string;
  visits: number;
  refused: number;
  /** The number of accepted writes to the counter that checks tokens, and its final value. */
  checkedWrites: number;
  checked: number;
  uncheckedWrites: number;
  unchecked: number;
  /** Visits that the resource accepted after a larger token, and writes that did not add one. */
  readonly violations: { readonly at: Instant; readonly text: string }[];
}

export interface RunHistory {
  readonly plan: Plan;
  readonly attempts: AttemptHistory[];
  readonly latchCalls: LatchCall[];
  readonly processes: Map<string, ProcessHistory>;
  /** Grants of a quorum. */
  readonly majorityGrants: MajorityGrant[];
  readonly extensions: MajorityConfirmation[];
  readonly serverRuns: ServerRun[];
  readonly breaks: Break[];
  readonly faults: FaultInterval[];
  readonly phases: PhaseInterval[];
  readonly failovers: Failover[];
  readonly resources: Map<string, ResourceHistory>;
  readonly residue: Extract<CoordinatorRecord, { e: "residue" }>[];
  readonly notQuiescent: Extract<CoordinatorRecord, { e: "not-quiescent" }>[];
  readonly scripts: { readonly at: Instant; readonly count: number }[];
  endedAt: Instant;
}

/** The quiet period that contains a moment, if there is one. */
export function phaseAt({ phases }: RunHistory, at: Instant): PhaseInterval | undefined {
  return phases.find(({ phase, from, to }) => phase !== "storm" && from <= at && at <= to);
}

/** For how long a process was stalled between two moments. */
export function stalledMs({ stalls }: ProcessHistory, from: Instant, to: Instant): number {
  let sum = 0;
  for (const stall of stalls) {
    sum += Math.max(0, Math.min(to, stall.to) - Math.max(from, stall.from));
  }
  return sum;
}

/** All requests, each once, even if a request names several keys. */
export function requestsOf({ attempts }: RunHistory): AttemptHistory[] {
  return attempts.filter(({ keyIndex }) => keyIndex === 0);
}

export function isGranted(attempt: AttemptHistory): attempt is GrantedAttempt {
  return attempt.grantedAt !== undefined;
}

/** Until when the holder could use the lease, as far as the holder knew. */
export function usableUntil({
  validUntil,
  releasingAt,
  lostAt,
  transferredAt,
  downgradedAt,
}: GrantedAttempt): Instant {
  return Math.min(
    validUntil,
    releasingAt ?? Infinity,
    lostAt ?? Infinity,
    transferredAt ?? Infinity,
    downgradedAt ?? Infinity,
  );
}

export function grantedByKey(run: RunHistory): Map<string, GrantedAttempt[]> {
  const byKey = new Map<string, GrantedAttempt[]>();
  for (const attempt of run.attempts) {
    if (isGranted(attempt)) {
      const held = byKey.get(attempt.key) ?? [];
      held.push(attempt);
      byKey.set(attempt.key, held);
    }
  }
  return byKey;
}
