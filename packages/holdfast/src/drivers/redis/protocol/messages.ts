import { isReserved } from "./keys.ts";
import { clientIdOf } from "./token.ts";

/** A grant by notification. */
export interface PushedGrant {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly serverMicros: number;
  readonly ttlMs: number;
  /** The delay in ms, from the receipt on, after which the vote counts. 0 except on a node of a quorum. */
  readonly waitMs: number;
  readonly runId: string;
  readonly lock: string;
}

/** A notification on the channel of a client. The scripts and the subscriber publish notifications. */
export type Message =
  | { readonly kind: "grant"; readonly grant: PushedGrant }
  | { readonly kind: "retry"; readonly token: string }
  | { readonly kind: "inquiry"; readonly token: string; readonly number: number }
  | { readonly kind: "latch-open"; readonly createdAt: string; readonly lock: string }
  | { readonly kind: "broken"; readonly token: string; readonly reason: string }
  | ProcessQuestion
  | ProcessAnswer
  | { readonly kind: "ping" };

/** A question of another process for the leases and waits of this process. */
export interface ProcessQuestion {
  readonly kind: "process-question";
  /** Identifies the question in its answers. */
  readonly nonce: string;
  /** The client ID of the process that asks. */
  readonly asker: string;
  readonly maxLength: number;
  /** Undefined: all keys. */
  readonly key: string | undefined;
}

/** The answer of another process. Its body is not parsed yet. */
export interface ProcessAnswer {
  readonly kind: "process-answer";
  readonly nonce: string;
  readonly clientId: string;
  readonly body: string;
}

/** The largest TTL that the options allow. */
const longestTtlMs = 86_400_000;

const grantForm = /^grant (\S+) (\d+) (\d+) (\d+) (\d+)((?:\+\d{1,9})?) ([\da-f]{40}) (.+)$/s;
const retryForm = /^retry (\S+)$/;
const inquiryForm = /^inquiry (\S+) (\d+)$/;
const latchOpenForm = /^latch-open (\d+) (.+)$/s;
const pingForm = /^ping [\da-f]{32}$/;
const questionForm = /^processes ([\da-f]{32}) ([\da-f]{32}) (\d{4,5}) (.{0,512})$/s;
const answerForm = /^process ([\da-f]{32}) ([\da-f]{32}) (.+)$/s;
const brokenMark = "broken ";

/**
 * Parses one notification; undefined if a field has an unexpected form. Never throws, because any client with the right to publish can
 * send any text. An error in the message handler of a client library would end the process.
 */
export function parseMessage(text: string): Message | undefined {
  switch (text.slice(0, text.indexOf(" "))) {
    case "grant":
      return parseGrant(text);
    case "retry": {
      const token = tokenOf(retryForm.exec(text)?.[1]);
      return token === undefined ? undefined : { kind: "retry", token };
    }
    case "inquiry":
      return parseInquiry(text);
    case "latch-open":
      return parseLatchOpen(text);
    case "broken":
      return parseBroken(text);
    case "processes":
      return parseQuestion(text);
    case "process":
      return parseAnswer(text);
    case "ping":
      return pingForm.test(text) ? { kind: "ping" } : undefined;
    default:
      return undefined;
  }
}

function parseGrant(text: string): Message | undefined {
  const [, field, firstDigits, lastDigits, micros, ttl, wait, runId = "", lock = ""] =
    grantForm.exec(text) ?? [];
  const token = tokenOf(field);
  const [first, last] = [numberOf(firstDigits), numberOf(lastDigits)];
  const [serverMicros, ttlMs] = [numberOf(micros), numberOf(ttl)];
  if (token === undefined || first === undefined || last === undefined || last < first || !isLock(lock)) {
    return undefined;
  } else if (serverMicros === undefined || ttlMs === undefined || ttlMs > longestTtlMs) {
    return undefined;
  }
  const waitMs = Number(wait); // "" means 0: the vote counts at once
  return { kind: "grant", grant: { token, first, last, serverMicros, ttlMs, waitMs, runId, lock } };
}

function parseInquiry(text: string): Message | undefined {
  const [, field, digits] = inquiryForm.exec(text) ?? [];
  const token = tokenOf(field);
  const number = numberOf(digits);
  return token === undefined || number === undefined ? undefined : { kind: "inquiry", token, number };
}

function parseLatchOpen(text: string): Message | undefined {
  const [, createdAt, lock = ""] = latchOpenForm.exec(text) ?? [];
  return createdAt === undefined || numberOf(createdAt) === undefined || !isLock(lock)
    ? undefined
    : { kind: "latch-open", createdAt, lock };
}

function parseQuestion(text: string): ProcessQuestion | undefined {
  const [whole, nonce = "", asker = "", length, key] = questionForm.exec(text) ?? [];
  return whole === undefined
    ? undefined
    : {
        kind: "process-question",
        nonce,
        asker,
        maxLength: Number(length),
        key: key === "" ? undefined : key,
      };
}

function parseAnswer(text: string): ProcessAnswer | undefined {
  const [whole, nonce = "", clientId = "", body = ""] = answerForm.exec(text) ?? [];
  return whole === undefined ? undefined : { kind: "process-answer", nonce, clientId, body };
}

function parseBroken(text: string): Message | undefined {
  const fields = parsed(text.slice(brokenMark.length));
  if (!Array.isArray(fields) || fields.length !== 3) {
    return undefined;
  }
  const [field, lock, reason] = fields as unknown[];
  const token = typeof field === "string" ? tokenOf(field) : undefined;
  return token === undefined || typeof lock !== "string" || !isLock(lock) || typeof reason !== "string"
    ? undefined
    : { kind: "broken", token, reason };
}

function tokenOf(field: string | undefined): string | undefined {
  return field !== undefined && clientIdOf(field) !== undefined ? field : undefined;
}

/** The number of a text of digits; undefined if a double cannot represent the number exactly. */
function numberOf(digits: string | undefined): number | undefined {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : undefined;
}

function isLock(lock: string): boolean {
  return lock !== "" && !isReserved(lock);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
