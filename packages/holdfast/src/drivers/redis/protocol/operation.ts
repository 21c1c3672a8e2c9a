import type { Instant } from "../../../runtime/clock.ts";
import type { LockKeys } from "./keys.ts";

/** One operation of the scripts `execute-single` and `execute-quorum`. */
export interface Operation {
  readonly keys: LockKeys;
  /** The audit of the server, for an operation that writes a record. */
  readonly auditKey?: string | undefined;
  /** The name and the arguments; for a node of a quorum as {@link withProposedFence} returns them. */
  readonly args: readonly string[];
  /** Called with the reply, which may arrive after the request was reported as timed out. */
  answered(reply: Reply): void;
  /** Called if there is no reply. The server may have performed the operation. */
  failed(error: unknown): void;
}

/** The reply to one operation, and the time of its request. */
export interface Reply {
  readonly value: unknown;
  readonly sent: Instant;
  readonly serverMicros: number;
  /** Whether no connection was lost between the request and now. */
  readonly sameConnection: boolean;
  /** The run id of a quorum's node; "" for other servers. */
  readonly runId: string;
}

/** The first value of a reply to an acquire. */
export const acquireStatus = {
  held: 0,
  granted: 1,
  queueFull: 2,
  /** Dead waiters remain before this one. A repeat removes more of them. */
  deadWaitersRemain: 3,
  /** The server did nothing, because the latest time of the request had passed by its clock. */
  executedTooLate: 4,
} as const;

/** The values of a reply to an acquire. The reply to the most frequent kind of grant is its fencing number alone. */
export function decodeAcquireReply({ value }: Reply): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [acquireStatus.granted, value, value];
}

/**
 * Adds the proposed fencing number to the arguments, as a node of a quorum expects. A caller that sends one operation to several nodes
 * shares one array, because {@link encodeShared} reuses its text.
 * @param proposedFence the fencing number that all nodes are to give a grant of this operation
 */
export function withProposedFence(args: readonly string[], proposedFence: string): readonly string[] {
  const [name = "", ...rest] = args;
  return [name, proposedFence, ...rest];
}

/** The keys and arguments of one call of a script. */
export interface CallText {
  readonly keys: string[];
  readonly args: string[];
}

type AcquireArgs = readonly [
  name: string,
  token: string,
  entryTail: string,
  ttl: string,
  fencingCount: string,
  wait: string,
  metadata: string,
  latest: string,
];

/** Byte 67 of a token begins the ticket of a mutex, a digit. */
const ticketAt = 66;

function isMutexToken(token: string): boolean {
  return token.length > ticketAt && token.charCodeAt(ticketAt) <= 57;
}

/**
 * The lone form of an operation on a mutex, as `single/lone-*.lua` documents it. It has fewer arguments, because each of them costs both
 * sides time. Undefined: the operation has no lone form.
 */
function loneForm(args: readonly string[], queueBound: string): string[] | undefined {
  const [name, token = "", entryTail] = args;
  if (!isMutexToken(token)) {
    return undefined;
  } else if (name === "acquire") {
    return loneAcquire(args as AcquireArgs, queueBound);
  }
  return name === "release" && entryTail === "" ? [name, token, args[3] as string] : undefined;
}

function loneAcquire(
  [name, token, entryTail, ttl, fencingCount, wait, metadata, latest]: AcquireArgs,
  queueBound: string,
): string[] | undefined {
  return fencingCount === "1" && metadata === ""
    ? [name, token, ttl, latest, wait === "0" ? "" : `${wait} ${queueBound} ${entryTail}`]
    : undefined;
}

/** The call of `execute-single` for some operations. */
export function callOfServer(
  operations: readonly Pick<Operation, "keys" | "args" | "auditKey">[],
  counter: string,
  queueBound: string,
): CallText {
  const [first, second] = operations;
  if (first === undefined) {
    return { keys: [counter], args: [queueBound, "[]"] };
  }
  const { keys, args, auditKey } = first;
  if (second === undefined) {
    const audit = auditKey === undefined ? [] : [auditKey];
    return { keys: [counter, ...keys, ...audit], args: loneForm(args, queueBound) ?? [queueBound, ...args] };
  }
  const isRequeue = operations.length === 2 && args[0] === "acquire" && second.args[0] === "release";
  return isRequeue && second.keys[0] === keys[0]
    ? { keys: [counter, ...keys], args: [queueBound, ...args, ...second.args] }
    : { keys: [counter, ...keysOf(operations)], args: [queueBound, encode(operations)] };
}

/** The keys of a batch. */
export function keysOf(operations: readonly Pick<Operation, "keys" | "auditKey">[]): string[] {
  const keys: string[] = [];
  for (const operation of operations) {
    keys.push(...operation.keys);
  }
  const auditKey = operations.find((operation) => operation.auditKey !== undefined)?.auditKey;
  if (auditKey !== undefined) {
    keys.push(auditKey);
  }
  return keys;
}

/** Like {@link encode}. The last text is cached, because a broadcast sends the same batch to all nodes. */
export function encodeShared(operations: readonly Pick<Operation, "args">[]): string {
  // The cache compares the argument arrays by identity, because a repeated operation has a new array.
  if (operations.length !== latest.args.length || operations.some(({ args }, i) => args !== latest.args[i])) {
    latest = { args: operations.map(({ args }) => args), text: encode(operations) };
  }
  return latest.text;
}

/** The operations of a batch as one argument. */
export function encode(operations: readonly Pick<Operation, "args">[]): string {
  const values: string[] = [];
  for (const { args } of operations) {
    values.push(...args);
  }
  return JSON.stringify(values);
}

let latest: { readonly args: readonly (readonly string[])[]; readonly text: string } = {
  args: [],
  text: "[]",
};

/** The proposed fencing number of operations that acquire nothing. */
export const noProposal = "0";
