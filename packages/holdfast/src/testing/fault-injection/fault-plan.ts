/** One call of a script or of a plain command, as a predicate sees it. */
export interface InterceptedCall {
  /** The script's name: `operate`, `hello`, `clients`, `scan` or `standing`; or that of the command, as it was sent. */
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The next so many calls, or those of which the predicate says so. */
export type FaultChoice = number | ((call: InterceptedCall) => boolean);

/** What goes wrong now. */
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
