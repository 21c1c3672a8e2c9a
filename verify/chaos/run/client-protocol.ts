import type { SerializedLease } from "holdfast";

import type { Lock } from "./lock.ts";
import type { EngineName, Keys, Omission } from "../plan/plan.ts";

/** How a client process gets to the servers. */
export interface ServerAddresses {
  /** Of its proxies, one before each server. */
  readonly ports: readonly number[];
  /** Where the servers listen, as they tell each other and clients; in the same order. */
  readonly servers: readonly number[];
  /** Where sentinels listen, if there are any. */
  readonly sentinels: readonly number[];
  /** Which of the client libraries it uses, where there are several. */
  readonly library: "ioredis" | "node-redis";
}

/** What a client process is started with. */
export interface ClientTask {
  readonly name: string;
  /** Which of the plan's clients; its own key is that of this index. */
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

/** What one process hands to another: a lease, or the name of an attempt, which is a stranger there. */
export type HandedOver =
  | { readonly kind: "lease"; readonly lock: Lock; readonly serialized: SerializedLease }
  | { readonly kind: "attempt"; readonly lock: Lock; readonly attemptId: string };

export type ToClient =
  | { readonly order: "storm" }
  | { readonly order: "quiet"; readonly round: number }
  | { readonly order: "block"; readonly forMs: number }
  /** Get a lock, most often the hot one, and be frozen between reading and writing. */
  | { readonly order: "ambush"; readonly withinMs: number }
  | { readonly order: "break" }
  | { readonly order: "take"; readonly handed: HandedOver }
  | { readonly order: "stop" };

export type FromClient =
  | { readonly said: "ready" }
  /** It waits to be frozen. */
  | { readonly said: "ambushed" }
  | { readonly said: "quiet"; readonly round: number }
  | { readonly said: "hand"; readonly handed: HandedOver };
