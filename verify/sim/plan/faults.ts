/** What goes wrong. Plain JSON; times are ms. */
export type Fault = ProcessFault | NodeFault | LinkFault;

type ProcessFault =
  /** Its event loop is blocked. @param sleeps the whole machine sleeps: its monotonic clock stands still */
  | {
      readonly kind: "freeze client";
      readonly client: number;
      readonly forMs: number;
      readonly sleeps: boolean;
    }
  /** @param silent its connections stay, as where a machine lost its power */
  | { readonly kind: "kill client"; readonly client: number; readonly silent: boolean }
  /** Somebody sets its wall clock. */
  | { readonly kind: "step client"; readonly client: number; readonly ms: number };

type NodeFault =
  | { readonly kind: "freeze node"; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "restart node";
      readonly node: number;
      readonly keepData: boolean;
      readonly downMs: number;
    }
  | { readonly kind: "step node"; readonly node: number; readonly ms: number };

/** Between a client and a node. */
export type LinkFault = { readonly client: number; readonly node: number } & (
  | { readonly kind: "cut"; readonly forMs: number }
  | {
      readonly kind: "slow";
      readonly forMs: number;
      readonly delaysMs: readonly [request: number, reply: number, message: number];
    }
  | { readonly kind: "lose replies"; readonly count: number; readonly mode: "silence" | "reset" }
  | { readonly kind: "lose messages"; readonly forMs: number; readonly event: string }
  | { readonly kind: "duplicate"; readonly count: number; readonly afterMs: number }
  | { readonly kind: "drop subscription" }
);
