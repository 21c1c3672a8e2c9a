/** One call of a script, as a predicate sees it. */
export interface Call {
  /** The script's name: `operate`, `hello`, `clients` or `scan`. */
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** What goes wrong now. */
export interface Plan {
  requestMs: number;
  replyMs: number;
  /** Says which replies are lost; a number: the next so many. */
  lostReplies: number | ((call: Call) => boolean);
  lossMode: "silence" | "reset";
  refusal: Error | null;
  refusals: number;
  isMessageDropped: (text: string, channel: string) => boolean;
}
