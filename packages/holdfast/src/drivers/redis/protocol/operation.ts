import type { Instant } from "../../../runtime/clock.ts";
import type { LockKeys } from "./keys.ts";

/** One operation of the scripts `execute` and `operate`. */
export interface Operation {
  readonly keys: LockKeys;
  /** Its name and its arguments; of a quorum's node as `withCandidate` makes them. */
  readonly args: readonly string[];
  /** The answer. It may still come after a timeout was told. */
  answered(reply: Reply): void;
  /** No answer: whether it was carried out is unknown. */
  failed(error: unknown): void;
}

/** What came back for one operation, and when it had been asked. */
export interface Reply {
  readonly value: unknown;
  readonly sent: Instant;
  readonly serverMicros: number;
  /** Whether no connection was lost between the request and now. */
  readonly sameConnection: boolean;
  /** Of a quorum's node: which run of the server answered; else "". */
  readonly runId: string;
}

/**
 * The arguments as a quorum's node reads them. Made once where several nodes are asked the same: they get one array.
 * @param proposedFence the fencing number that all nodes shall give to whom this operation grants the lock
 */
export function withProposedFence(args: readonly string[], proposedFence: string): readonly string[] {
  const [name = "", ...rest] = args;
  return [name, proposedFence, ...rest];
}

/** The operations of a batch as one argument. The nodes of a quorum are usually asked the same in the same turn. */
export function encode(operations: readonly Pick<Operation, "args">[]): string {
  // The arguments themselves are kept, because an operation that is sent again has others.
  if (operations.length !== latest.args.length || operations.some(({ args }, i) => args !== latest.args[i])) {
    const args = operations.map((operation) => operation.args);
    latest = { args, text: JSON.stringify(args.flat()) };
  }
  return latest.text;
}

let latest: { readonly args: readonly (readonly string[])[]; readonly text: string } = {
  args: [],
  text: "[]",
};

/** A candidate of who does not mean to be granted anything. */
export const noProposal = "0";
