import type { LockMode } from "./lock-mode.ts";
import type { Fault } from "./faults.ts";

/**
 * The engine of a schedule. `quorum`: several servers, of which a majority decides. `server`: one server. `memory`: no server; all
 * clients are in one process, with one driver.
 */
export type Engine = "quorum" | "server" | "memory";
export const engines: readonly Engine[] = ["quorum", "server", "memory"];

/**
 * The kind of lock of a schedule. A kind that is a mutex on the server is mixed with plain mutexes on the same key, and so are, except on
 * a quorum, readers and writers: a request of the other kind is refused while the key is in use.
 */
export type Kind = "mutex" | "read-write" | "semaphore" | "all" | "reentrant" | "election" | "latch";
export const kinds: readonly Kind[] = [
  "mutex",
  "read-write",
  "semaphore",
  "all",
  "reentrant",
  "election",
  "latch",
];

/**
 * The faults of a schedule. `storm`: all faults. `calm`: none. `lost-inquiries`: each inquiry is lost, by which a node requests a vote
 * back for an earlier waiter. `lost-notifications`: each notification is lost that wakes a waiter. `contention`: no faults, and several
 * callers try at the same time. `process-death`: no faults, except that a process dies. `reordered`: no message is lost, but nodes execute some
 * requests after later commands of the same connection. `full-memory`: no message is lost, but the memory of nodes is full for a time.
 */
export type FaultScenario =
  | "storm"
  | "calm"
  | "lost-inquiries"
  | "lost-notifications"
  | "contention"
  | "process-death"
  | "reordered"
  | "full-memory";
export const scenarios: readonly FaultScenario[] = [
  "storm",
  "calm",
  "lost-inquiries",
  "lost-notifications",
  "contention",
  "process-death",
  "reordered",
  "full-memory",
];

/** All steps of one simulated run. Plain JSON, so that a printed schedule can be run again. Times are ms. */
export interface Schedule {
  readonly seed: number;
  readonly engine: Engine;
  readonly kind: Kind;
  /** The first limit of a semaphore, or the count of a latch. */
  readonly limit?: number;
  readonly scenario: FaultScenario;
  /** No node for the engine `memory`, and one node for the engine `server`. */
  readonly nodes: readonly NodeSetup[];
  readonly clients: readonly ClientSetup[];
  readonly maxTtlMs: number;
  readonly claimMs: number;
  readonly nodeTimeoutMs: number;
  /** The option `restartGuard` of the clients of a quorum. @defaultValue "wait" */
  readonly restartGuard?: "trust-durable";
  /** When the faults end. */
  readonly quietAt: number;
  readonly steps: readonly Step[];
}

/** A schedule without its steps. */
export type ScheduleFrame = Omit<Schedule, "steps">;

export interface NodeSetup {
  /** The first difference of its clock from the true time; `rate` is the speed of the clock. */
  readonly offsetMs: number;
  readonly rate: number;
  readonly durable: boolean;
}

export interface ClientSetup {
  /** The client that owns the process: the client itself, or an earlier client, whose clock and driver it shares. */
  readonly process: number;
  readonly offsetMs: number;
  readonly rate: number;
  readonly handover: boolean;
  /** The delay in one direction, by node. */
  readonly delaysMs: readonly number[];
  readonly messageDelaysMs: readonly number[];
}

export type Step = Action & { readonly at: number };
export type Action = Use | Break | SetLimit | CountDown | Await | Fault;

/** One request of a caller, and what the caller does with the lease. */
export interface Use {
  /** `with`: by `withLock`, or by `tryWithLock` if the caller does not wait. */
  readonly kind: "acquire" | "try" | "with";
  readonly client: number;
  /** Of several keys, the first in sorted order. */
  readonly key: string;
  /** The mode of the request; none: a mutex. */
  readonly mode?: LockMode;
  readonly ttlMs: number;
  /** null: without a deadline. */
  readonly waitMs: number | null;
  readonly renew: boolean;
  readonly holdMs: number;
  /** When the caller extends the lease, after the grant. */
  readonly extendAtMs?: number;
  /** When the caller aborts the call. */
  readonly abortMs?: number;
  readonly maxHoldMs?: number;
  readonly minHoldMs?: number;
  /** The call is repeated with this `attemptId` if the engine failed. */
  readonly attemptId?: string;
  /** The end, if not a release: the lease expires, the callback throws, or the lease is transferred to that client. */
  readonly ending?: "orphan" | "throw" | Transfer;
}

/** The lease is transferred to another client. */
export interface Transfer {
  readonly transferTo: number;
  /** How long that client holds the lease; undefined: half as long as the former client. */
  readonly holdMs?: number;
  /** How long the former process then pauses. */
  readonly pausesForMs?: number;
}

/** An operator breaks the present grant of the key. */
export interface Break {
  readonly kind: "break";
  readonly client: number;
  readonly key: string;
}

/** An operator changes the limit of a semaphore. */
export interface SetLimit {
  readonly kind: "set limit";
  readonly client: number;
  readonly key: string;
  readonly limit: number;
}

interface LatchAction {
  readonly client: number;
  readonly key: string;
  /** The TTL of the latch that the call may create. */
  readonly ttlMs: number;
  /** All calls of one client and round use one `Latch` object, which belongs to the latch of its first call. */
  readonly round: number;
}

/** A caller counts a latch down. */
export interface CountDown extends LatchAction {
  readonly kind: "count down";
  /** The call is repeated with this `attemptId` if the engine failed. */
  readonly attemptId?: string;
}

/** A caller waits until a latch is open. */
export interface Await extends LatchAction {
  readonly kind: "await";
  /** null: without a deadline. */
  readonly waitMs: number | null;
  /** When the caller aborts the call. */
  readonly abortMs?: number;
}

export function isUse(action: Action): action is Use {
  return action.kind === "acquire" || action.kind === "try" || action.kind === "with";
}

export function isLatchAction(action: Action): action is CountDown | Await {
  return action.kind === "count down" || action.kind === "await";
}

export function isFault(action: Action): action is Fault {
  return !isUse(action) && !isLatchAction(action) && action.kind !== "break" && action.kind !== "set limit";
}

/** Whether no message of a schedule is lost, so that no lock stays free for long while a caller waits. */
export function losesNothing(schedule: Schedule): boolean {
  return isFaultFree(schedule) || schedule.scenario === "reordered";
}

/** Whether a schedule has no faults, so that an error of the engine is a failure. */
export function isFaultFree({ scenario }: Schedule): boolean {
  return scenario === "calm" || scenario === "contention" || scenario === "process-death";
}

/** Whether each operation on a present lease succeeds. With full memory a server refuses only new requests. */
export function servesLeases(schedule: Schedule): boolean {
  return isFaultFree(schedule) || schedule.scenario === "full-memory";
}

/**
 * When a node of a quorum lost its data after a clock had been set forward, ms. The lost numbers may have been ahead of the time, so the
 * node can issue these numbers again, once it votes.
 */
export function numbersLostAt({ engine, steps }: Schedule): readonly number[] {
  const ahead = steps.find((step) => step.kind === "step node" && step.ms > 0);
  if (engine !== "quorum" || !ahead) {
    return [];
  }
  return steps
    .filter((step) => step.kind === "restart node" && !step.keepData && step.at > ahead.at)
    .map(({ at }) => at);
}
