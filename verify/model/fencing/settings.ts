type FencingMutant =
  | "no-increment"
  | "no-second-round"
  | "acknowledgement-without-value"
  | "agree-without-comparing"
  | "no-restart-guard";

export interface FencingSettings {
  readonly nodes: number;
  /** The number of attempts. Each may start at any time, so they represent repeated acquires of few clients as well as many clients. */
  readonly attempts: number;
  /** How often in total an acquire takes effect on a node once more, by a repeat or a duplicate. */
  readonly extraEffects: number;
  /**
   * Candidates are from 1 to this number, and each operation may have another one. With "following" each attempt has one candidate, which is
   * larger than every number so far.
   */
  readonly proposals: number | "following";
  /** false: a reply arrives at once or never. true: a reply may also arrive later, in a later round. */
  readonly lateReplies: boolean;
  /**
   * If true, a node drops a grant only after the validity of its client has expired, which is Redlock's assumption. If false, a node may drop
   * any grant at any time, and its client continues. Then the model assumes nothing about clocks, pauses, or durations.
   */
  readonly isTimed: boolean;
  /** Nodes that restart without their grants and numbers. */
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
