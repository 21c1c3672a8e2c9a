/** A fault of a schedule. Plain JSON; times are ms. */
export type Fault = ProcessFault | NodeFault | LinkFault;

type ProcessFault =
  /** The event loop is blocked. @param sleeps the whole machine sleeps, so that its monotonic clock stands still */
  | {
      readonly kind: "freeze client";
      readonly client: number;
      readonly forMs: number;
      readonly sleeps: boolean;
    }
  /**
   * The process pauses while it handles the next event from a node: for the collector, by its scheduler, or with its machine.
   * @param readings how many readings of its clocks in that turn precede the pause
   */
  | {
      readonly kind: "pause client";
      readonly client: number;
      readonly on: "reply" | "message";
      readonly readings: number;
      readonly forMs: number;
    }
  /** @param silent the connections stay open, as after a power failure */
  | { readonly kind: "kill client"; readonly client: number; readonly silent: boolean }
  /** The wall clock is set. */
  | { readonly kind: "step client"; readonly client: number; readonly ms: number };

type NodeFault =
  | { readonly kind: "freeze node"; readonly node: number; readonly forMs: number }
  | {
      readonly kind: "restart node";
      readonly node: number;
      readonly keepData: boolean;
      readonly downMs: number;
      /** The next run reports that each write is on its disk before the reply. */
      readonly becomesDurable?: true;
    }
  | { readonly kind: "step node"; readonly node: number; readonly ms: number }
  /** The node refuses commands that may need memory, except after the first write of a script. */
  | { readonly kind: "fill memory"; readonly node: number; readonly forMs: number };

/** A fault between a client and a node. */
export type LinkFault = { readonly client: number; readonly node: number } & (
  | { readonly kind: "cut"; readonly forMs: number }
  | {
      readonly kind: "slow";
      readonly forMs: number;
      readonly delaysMs: readonly [request: number, reply: number, message: number];
    }
  | { readonly kind: "lose replies"; readonly count: number; readonly mode: "silence" | "reset" }
  | { readonly kind: "lose messages"; readonly forMs: number; readonly event: string }
  /** The node executes the next requests of locks after later commands, as after NOSCRIPT or MOVED. Nothing is lost. */
  | { readonly kind: "reorder"; readonly count: number; readonly afterMs: number }
  | { readonly kind: "duplicate"; readonly count: number; readonly afterMs: number }
  | { readonly kind: "drop subscription" }
);
