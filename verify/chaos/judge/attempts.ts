import type { LockName } from "../run/lock.ts";
import type { AskKind, ConductorRecord, Counted, Failover, LatchAsked, Moment, Phase } from "./history.ts";
import type { Plan } from "../plan/plan.ts";

/** One ask and what became of it: the history, told by lease instead of by moment. Of several keys: one story for each. */
export interface Story {
  readonly process: string;
  readonly ask: number;
  readonly key: string;
  /** Of several keys: which of them `key` is, in the order in which they were named. */
  readonly part: number;
  readonly as: LockName;
  /** Of a semaphore; else 1. */
  readonly permits: number;
  readonly nest: string | undefined;
  readonly kind: AskKind;
  readonly waitMs: number;
  readonly attempt: string | undefined;
  readonly askedAt: Moment;
  grantedAt: Moment | undefined;
  token: bigint;
  /** The latest end of validity that its holder knew. */
  until: Moment;
  refusedAt: Moment | undefined;
  refusal: string | undefined;
  lostAt: Moment | undefined;
  lossReason: string | undefined;
  untoldAt: Moment | undefined;
  releasingAt: Moment | undefined;
  releasedAt: Moment | undefined;
  releaseAnswer: string | undefined;
  transferredAt: Moment | undefined;
  downgradedAt: Moment | undefined;
}

/** A story with a lease. */
export type Held = Story & { grantedAt: Moment };

/** A call of a latch, and what became of it. */
export interface LatchCall extends LatchAsked {
  readonly process: string;
  readonly call: number;
  readonly askedAt: Moment;
  settledAt?: Moment;
  /** It was answered. */
  left?: number;
  /** It was refused. */
  code?: string;
}

export interface ProcessStory {
  readonly name: string;
  openedAt: Moment;
  handover: boolean;
  killedAt: Moment | undefined;
  crashed: { readonly at: Moment; readonly how: string } | undefined;
  closedAt: Moment | undefined;
  readonly stalls: { readonly from: Moment; readonly to: Moment }[];
  readonly memory: { readonly at: Moment; readonly bytes: number }[];
  readonly unheard: { readonly at: Moment; readonly error: string }[];
}

/** A majority of a quorum confirmed that a process has a lock. */
export interface Confirmed extends Counted {
  readonly process: string;
  readonly at: Moment;
}

/** It granted it. */
export interface Election extends Confirmed {
  readonly token: bigint;
  readonly rounds: number;
}

/** Of a server, from one restart to the next. */
export interface ServerRun {
  readonly node: number;
  readonly name: string;
  /** It was not started before. */
  readonly since: Moment;
  /** When it was killed. */
  to: Moment;
}

export interface FaultStory {
  readonly number: number;
  readonly kind: string;
  readonly target: string;
  readonly from: Moment;
  to: Moment;
}

/** An operator's, from when it was begun. */
export interface Break {
  readonly at: Moment;
  readonly process: string;
  readonly key: string;
  readonly token: bigint;
  /** When it was told that it was the present grant, and had been ended; never, where it was not told that. */
  doneAt: Moment | undefined;
}

interface PhaseStory {
  readonly phase: Phase;
  readonly round: number;
  readonly from: Moment;
  to: Moment;
}

/** What the resource saw of one key. */
export interface ResourceStory {
  readonly key: string;
  visits: number;
  refused: number;
  /** Accepted writes of the counter that checks tokens, and what it was in the end. */
  checkedWrites: number;
  checked: number;
  uncheckedWrites: number;
  unchecked: number;
  /** Accepted although a larger token had been there, or a write that did not add one. */
  readonly faults: { readonly at: Moment; readonly text: string }[];
}

export interface RunStory {
  readonly plan: Plan;
  readonly stories: Story[];
  readonly latchCalls: LatchCall[];
  readonly processes: Map<string, ProcessStory>;
  /** Of a quorum. */
  readonly elections: Election[];
  readonly extensions: Confirmed[];
  readonly serverRuns: ServerRun[];
  readonly breaks: Break[];
  readonly faults: FaultStory[];
  readonly phases: PhaseStory[];
  readonly failovers: Failover[];
  readonly resources: Map<string, ResourceStory>;
  readonly left: Extract<ConductorRecord, { e: "left" }>[];
  readonly restless: Extract<ConductorRecord, { e: "restless" }>[];
  readonly scripts: { readonly at: Moment; readonly count: number }[];
  endedAt: Moment;
}

/** The peace, if it is one, of a moment. */
export function phaseAt({ phases }: RunStory, at: Moment): PhaseStory | undefined {
  return phases.find(({ phase, from, to }) => phase !== "storm" && from <= at && at <= to);
}

/** How long the process could not run between two moments. */
export function stalledMs({ stalls }: ProcessStory, from: Moment, to: Moment): number {
  let sum = 0;
  for (const stall of stalls) {
    sum += Math.max(0, Math.min(to, stall.to) - Math.max(from, stall.from));
  }
  return sum;
}

/** Each once, also where it is of several keys. */
export function asksOf({ stories }: RunStory): Story[] {
  return stories.filter(({ part }) => part === 0);
}

export function isHeld(story: Story): story is Held {
  return story.grantedAt !== undefined;
}

/** Until when its holder might use it, as far as it knew. */
export function endOf({ until, releasingAt, lostAt, transferredAt, downgradedAt }: Held): Moment {
  return Math.min(
    until,
    releasingAt ?? Infinity,
    lostAt ?? Infinity,
    transferredAt ?? Infinity,
    downgradedAt ?? Infinity,
  );
}

export function heldByKey(run: RunStory): Map<string, Held[]> {
  const byKey = new Map<string, Held[]>();
  for (const story of run.stories) {
    if (isHeld(story)) {
      const held = byKey.get(story.key) ?? [];
      held.push(story);
      byKey.set(story.key, held);
    }
  }
  return byKey;
}
