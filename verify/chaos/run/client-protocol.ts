import type { SerializedLease } from "holdfast";

import type { Lock } from "./lock.ts";
import type { EngineName, Keys, Omission } from "../plan/plan.ts";

/** The addresses by which a client process reaches the servers. */
export interface ServerAddresses {
  /** The ports of its proxies, one in front of each server. */
  readonly ports: readonly number[];
  /** The ports of the servers, as servers report them to each other and to clients, in the same order. */
  readonly servers: readonly number[];
  /** The ports of the sentinels, if there are any. */
  readonly sentinels: readonly number[];
  /** The index of the client process, by which an engine selects one of its client libraries. */
  readonly client: number;
}

/** The arguments of a client process. */
export interface ClientTask {
  readonly name: string;
  /** The index of the client in the plan, and of its own key. */
  readonly index: number;
  readonly historyFile: string;
  readonly epoch: string;
  readonly engine: EngineName;
  readonly without: Omission | null;
  readonly addresses: ServerAddresses;
  readonly resourcePort: number;
  readonly handover: boolean;
  readonly callers: number;
  readonly keys: Keys;
  readonly probeWaitMs: number;
  readonly seed: number;
}

/** A lease or the name of an attempt, from one process to another. There the attempt starts a separate acquire. */
export type HandedOver =
  | { readonly kind: "lease"; readonly lock: Lock; readonly serialized: SerializedLease }
  | { readonly kind: "attempt"; readonly lock: Lock; readonly attemptId: string };

export type ToClient =
  | { readonly order: "storm" }
  | { readonly order: "quiet"; readonly round: number }
  | { readonly order: "block"; readonly forMs: number }
  /** Acquire a lock, most often the hot one, and wait for the freeze between reading and writing. */
  | { readonly order: "hold-for-freeze"; readonly withinMs: number }
  | { readonly order: "break" }
  | { readonly order: "take"; readonly handed: HandedOver }
  | { readonly order: "stop" };

export type FromClient =
  | { readonly said: "ready" }
  /** The process is ready to be frozen. */
  | { readonly said: "ready-to-freeze" }
  | { readonly said: "quiet"; readonly round: number }
  | { readonly said: "hand"; readonly handed: HandedOver };
