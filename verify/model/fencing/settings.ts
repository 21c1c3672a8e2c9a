type FencingMutant =
  | "no-increment"
  | "no-second-round"
  | "acknowledgement-without-value"
  | "agree-without-comparing"
  | "no-restart-guard";

export interface FencingSettings {
  readonly nodes: number;
  /** Each may start at any time, so they stand for repeated acquires of few clients as well as for many clients. */
  readonly attempts: number;
  /** How often in all an acquire takes effect on a node once more: repeats and duplicates. */
  readonly extraEffects: number;
  /** Candidates are 1 up to this, another one in each operation; "following": of an attempt one, greater than every number that was given so far. */
  readonly proposals: number | "following";
  /** false: a reply is heard as soon as the node has answered, or never. true: also later, in a later round. */
  readonly lateReplies: boolean;
  /**
   * true: what a node lets go is over for the client as well (Redlock's assumption). false: a node may drop any grant at any time,
   * and its client goes on: nothing is assumed of clocks, pauses, or how long anything takes.
   */
  readonly isTimed: boolean;
  /** Nodes that restart and have forgotten grants and numbers. */
  readonly restarts: number;
  readonly mutant: FencingMutant | undefined;
}

export const defaultFencing: FencingSettings = {
  nodes: 3,
  attempts: 2,
  extraEffects: 0,
  proposals: 2,
  lateReplies: false,
  isTimed: false,
  restarts: 0,
  mutant: undefined,
};
