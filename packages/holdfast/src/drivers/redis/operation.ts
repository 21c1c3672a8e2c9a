import type { Moment } from "../../clock.ts";
import type { LockKeys } from "./keys.ts";

/** One operation of the script `operate`. */
export interface Operation {
  readonly keys: LockKeys;
  /** What `textOf` makes of its name and its arguments. */
  readonly text: string;
  /** The answer. It may still come after a timeout was told. */
  answered(reply: Reply): void;
  /** No answer: whether it was carried out is unknown. */
  failed(error: unknown): void;
}

/** What came back for one operation, and when it had been asked. */
export interface Reply {
  readonly value: unknown;
  readonly sent: Moment;
  readonly serverMicros: number;
  /** Whether no connection was lost between the request and now. */
  readonly isSteady: boolean;
  /** Of a quorum's node: which run of the server answered; else "". */
  readonly runId: string;
}

/**
 * An operation as the script reads it. Made once where several nodes are asked the same: they get one text.
 * @param candidate for a quorum's node: the fencing number that all nodes shall give to whom this operation grants the lock
 */
export function textOf(args: readonly string[], candidate?: string): string {
  const [name] = args;
  const words = candidate === undefined ? [name] : [name, candidate];
  for (let i = 1; i < args.length; i += 1) {
    words.push(args[i]);
  }
  return JSON.stringify(words).slice(1, -1);
}

/** The texts of a batch as one argument. */
export function joined(texts: readonly string[]): string {
  if (!isSame(texts, latest.texts)) {
    latest = { texts, text: `[${texts.join(",")}]` };
  }
  return latest.text;
}

/** The nodes of a quorum are usually asked the same in the same turn. */
let latest: { readonly texts: readonly string[]; readonly text: string } = { texts: [], text: "[]" };

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((text, i) => text === others[i]);
}

/** A candidate of who does not mean to be granted anything. */
export const noCandidate = "0";
