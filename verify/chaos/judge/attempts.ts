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

/** One ask and what became of it: the history, told by lease instead of by moment. Of several keys: one story for each. */
export interface AttemptHistory {
  readonly process: string;
  readonly requestId: number;
  readonly key: string;
  /** Of several keys: which of them `key` is, in the order in which they were named. */
  readonly keyIndex: number;
  readonly lockKind: LockKind;
  /** Of a semaphore; else 1. */
  readonly permits: number;
  readonly reentrantHold: string | undefined;
  readonly kind: RequestKind;
  readonly waitMs: number;
  readonly attemptId: string | undefined;
  readonly requestedAt: Instant;
  grantedAt: Instant | undefined;
  token: bigint;
  /** The latest end of validity that its holder knew. */
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

/** A story with a lease. */
export type GrantedAttempt = AttemptHistory & { grantedAt: Instant };

/** A call of a latch, and what became of it. */
export interface LatchCall extends LatchRequest {
  readonly process: string;
  readonly call: number;
  readonly requestedAt: Instant;
  settledAt?: Instant;
  /** It was answered. */
  remaining?: number;
  /** It was refused. */
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

/** A majority of a quorum confirmed that a process has a lock. */
export interface MajorityConfirmation extends VoteCount {
  readonly process: string;
  readonly at: Instant;
}

/** It granted it. */
export interface MajorityGrant extends MajorityConfirmation {
  readonly token: bigint;
  readonly rounds: number;
}

/** Of a server, from one restart to the next. */
export interface ServerRun {
  readonly node: number;
  readonly name: string;
  /** It was not started before. */
  readonly since: Instant;
  /** When it was killed. */
  to: Instant;
}

export interface FaultInterval {
  readonly faultId: number;
  readonly kind: string;
  readonly target: string;
  readonly from: Instant;
  to: Instant;
}

/** An operator's, from when it was begun. */
export interface Break {
  readonly at: Instant;
  readonly process: string;
  readonly key: string;
  readonly token: bigint;
  /** When it was told that it was the present grant, and had been ended; never, where it was not told that. */
  confirmedAt: Instant | undefined;
}

interface PhaseInterval {
  readonly phase: Phase;
  readonly round: number;
  readonly from: Instant;
  to: Instant;
}

/** What the resource saw of one key. */
export interface ResourceHistory {
  readonly key: string;
  visits: number;
  refused: number;
  /** Accepted writes of the counter that checks tokens, and what it was in the end. */
  checkedWrites: number;
  checked: number;
  uncheckedWrites: number;
  unchecked: number;
  /** Accepted although a larger token had been there, or a write that did not add one. */
  readonly violations: { readonly at: Instant; readonly text: string }[];
}

export interface RunHistory {
  readonly plan: Plan;
  readonly attempts: AttemptHistory[];
  readonly latchCalls: LatchCall[];
  readonly processes: Map<string, ProcessHistory>;
  /** Of a quorum. */
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

/** The peace, if it is one, of a moment. */
export function phaseAt({ phases }: RunHistory, at: Instant): PhaseInterval | undefined {
  return phases.find(({ phase, from, to }) => phase !== "storm" && from <= at && at <= to);
}

/** How long the process could not run between two moments. */
export function stalledMs({ stalls }: ProcessHistory, from: Instant, to: Instant): number {
  let sum = 0;
  for (const stall of stalls) {
    sum += Math.max(0, Math.min(to, stall.to) - Math.max(from, stall.from));
  }
  return sum;
}

/** Each once, also where it is of several keys. */
export function requestsOf({ attempts }: RunHistory): AttemptHistory[] {
  return attempts.filter(({ keyIndex }) => keyIndex === 0);
}

export function isGranted(attempt: AttemptHistory): attempt is GrantedAttempt {
  return attempt.grantedAt !== undefined;
}

/** Until when its holder might use it, as far as it knew. */
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
