/** One call of a script or of a plain command, for a predicate. */
export interface InterceptedCall {
  /** The name of the script, such as `execute-single`, `execute-quorum` or `handshake`, or the name of the command. */
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The number of next calls, or a predicate that chooses calls. */
export type FaultChoice = number | ((call: InterceptedCall) => boolean);

/** The faults in force. */
export interface FaultPlan {
  requestMs: number;
  replyMs: number;
  messageMs: number;
  lostReplies: FaultChoice;
  lossMode: "silence" | "reset";
  refusal: Error | null;
  refusals: number;
  duplicates: FaultChoice;
  duplicatesAfterMs: number;
  isMessageDropped: (text: string, channel: string) => boolean;
}
