import type { LockMode } from "./lock-mode.ts";
import type { Fault } from "./faults.ts";

/**
 * What the locks stand on. `quorum`: some servers, of which a majority decides. `server`: one. `memory`: none; all clients are in one
 * process, on one driver.
 */
export type Engine = "quorum" | "server" | "memory";
export const engines: readonly Engine[] = ["quorum", "server", "memory"];

/** What the keys of a schedule are. Those that are mutexes on the server meet plain mutexes on the same key. */
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
 * `storm`: everything goes wrong. `calm`: nothing does. `deaf`: no inquiry arrives, by which an earlier rival asks for a vote.
 * `unheard`: no message that wakes a waiter does. `duel`: nothing goes wrong, and several try at the same moment. `death`: nothing
 * goes wrong, but that a process dies.
 */
export type FaultScenario =
  "storm" | "calm" | "lost-inquiries" | "lost-notifications" | "contention" | "process-death";
export const scenarios: readonly FaultScenario[] = [
  "storm",
  "calm",
  "lost-inquiries",
  "lost-notifications",
  "contention",
  "process-death",
];

/** Plain JSON: what is printed of it can be played again. Times are ms. */
export interface Schedule {
  readonly seed: number;
  readonly engine: Engine;
  readonly kind: Kind;
  /** Of semaphores, at first; of latches how many attempts open them. */
  readonly limit?: number;
  readonly scenario: FaultScenario;
  /** None where the locks are in memory, one where they are on one server. */
  readonly nodes: readonly NodeSetup[];
  readonly clients: readonly ClientSetup[];
  readonly maxTtlMs: number;
  readonly claimMs: number;
  readonly nodeTimeoutMs: number;
  /** When the faults end. */
  readonly quietAt: number;
  readonly steps: readonly Step[];
}

export interface NodeSetup {
  /** How far its clock is from the true time at first, and how fast it goes. */
  readonly offsetMs: number;
  readonly rate: number;
  readonly durable: boolean;
}

export interface ClientSetup {
  /** The client in whose process it is: its own number, or an earlier one, whose clock and driver it shares. */
  readonly process: number;
  readonly offsetMs: number;
  readonly rate: number;
  readonly handover: boolean;
  /** One way, by node. */
  readonly delaysMs: readonly number[];
  readonly messageDelaysMs: readonly number[];
}

export type Step = Action & { readonly at: number };
export type Action = Use | Break | SetLimit | CountDown | Await | Fault;

/** What a caller asks for, and what it does with it. */
export interface Use {
  /** `with`: by `withLock`, or by `tryWithLock` where it does not wait. */
  readonly kind: "acquire" | "try" | "with";
  readonly client: number;
  /** Of several: the first in sorted order. */
  readonly key: string;
  /** As what it asks for the key; none: as a mutex. */
  readonly mode?: LockMode;
  readonly ttlMs: number;
  /** null: for ever. */
  readonly waitMs: number | null;
  readonly renew: boolean;
  readonly holdMs: number;
  /** When it extends the lease, after the grant. */
  readonly extendAtMs?: number;
  /** When it loses its patience. */
  readonly abortMs?: number;
  readonly maxHoldMs?: number;
  /** The name of its attempt: it is repeated where the engine was in trouble. */
  readonly attemptId?: string;
  /** How it ends, if not by a release: left to expire, the work throws, or given to the client of that number. */
  readonly ending?: "orphan" | "throw" | { readonly transferTo: number };
}

/** An operator ends whatever grant of the key is in force. */
export interface Break {
  readonly kind: "break";
  readonly client: number;
  readonly key: string;
}

/** An operator changes how many permits there are. */
export interface SetLimit {
  readonly kind: "set limit";
  readonly client: number;
  readonly key: string;
  readonly limit: number;
}

interface LatchAction {
  readonly client: number;
  readonly key: string;
  /** For how long it would begin one. */
  readonly ttlMs: number;
  /** Calls of one client and round are by one `Latch`, which stays with what it met first. */
  readonly round: number;
}

/** A caller counts a latch down. */
export interface CountDown extends LatchAction {
  readonly kind: "count down";
  /** The name of its attempt: it is repeated where the engine was in trouble. */
  readonly attemptId?: string;
}

/** A caller waits until a latch is open. */
export interface Await extends LatchAction {
  readonly kind: "await";
  /** null: for ever. */
  readonly waitMs: number | null;
  /** When it loses its patience. */
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

/** Nothing goes wrong in it: what a caller must never be told then is a failure. */
export function isFaultFree({ scenario }: Schedule): boolean {
  return scenario === "calm" || scenario === "contention" || scenario === "process-death";
}

/**
 * When a node of a quorum lost what it kept while its numbers may have been ahead of the time, as a clock had been set forward: it can
 * give them again, once it votes. ms.
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
