/**
 * `storm`: everything goes wrong. `calm`: nothing does. `deaf`: no inquiry arrives. `duel`: nothing goes wrong, and several try at
 * the same moment.
 */
export type Weather = "storm" | "calm" | "deaf" | "duel";

export interface NodeSetup {
  /** How far its clock is from the true time at first, ms, and how fast it goes. */
  readonly offsetMs: number;
  readonly rate: number;
  readonly durable: boolean;
}

export interface ClientSetup {
  readonly offsetMs: number;
  readonly rate: number;
  readonly handover: boolean;
  /** One way, ms, by node. */
  readonly delaysMs: readonly number[];
  readonly messageDelaysMs: readonly number[];
}

/** What a caller asks for, and what it does with it. */
export interface Use {
  readonly kind: "acquire" | "try";
  readonly client: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew: boolean;
  readonly holdMs: number;
  /** When it extends the lease, after the grant; and to which TTL. */
  readonly extendAtMs?: number;
  /** When it loses its patience. */
  readonly abortMs?: number;
}

export type Fault =
  | {
      readonly kind: "freeze client";
      readonly client: number;
      readonly forMs: number;
      readonly sleeps: boolean;
    }
  /** @param silent its connections stay, as where a machine lost its power */
  | { readonly kind: "kill client"; readonly client: number; readonly silent: boolean }
  | { readonly kind: "freeze node"; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "restart node";
      readonly node: number;
      readonly keepData: boolean;
      readonly downMs: number;
    }
  | { readonly kind: "step node"; readonly node: number; readonly ms: number }
  | { readonly kind: "cut"; readonly client: number; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "slow";
      readonly client: number;
      readonly node: number;
      readonly forMs: number;
      readonly delaysMs: readonly [request: number, reply: number, message: number];
    }
  | {
      readonly kind: "lose replies";
      readonly client: number;
      readonly node: number;
      readonly count: number;
      readonly mode: "silence" | "reset";
    }
  | {
      readonly kind: "lose messages";
      readonly client: number;
      readonly node: number;
      readonly forMs: number;
      readonly word: string;
    }
  | {
      readonly kind: "duplicate";
      readonly client: number;
      readonly node: number;
      readonly count: number;
      readonly afterMs: number;
    }
  | { readonly kind: "drop subscription"; readonly client: number; readonly node: number };

export type Step = (Use | Fault) & { readonly at: number };

export interface Schedule {
  readonly seed: number;
  readonly weather: Weather;
  readonly nodes: readonly NodeSetup[];
  readonly clients: readonly ClientSetup[];
  readonly maxTtlMs: number;
  readonly claimMs: number;
  readonly nodeTimeoutMs: number;
  /** When the faults end. */
  readonly peaceAt: number;
  readonly steps: readonly Step[];
}
