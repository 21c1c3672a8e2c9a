import { isReserved } from "./keys.ts";
import { clientOf } from "./token.ts";

/** A grant that a message brought. */
export interface PushedGrant {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly serverMicros: number;
  readonly ttlMs: number;
  /** Of a quorum's node: in how many ms from its receipt on it counts. */
  readonly waitMs: number;
  readonly runId: string;
  readonly lock: string;
}

/** A message on the channel of a client. The scripts and the subscriber write them. */
export type Message =
  | { readonly kind: "grant"; readonly grant: PushedGrant }
  | { readonly kind: "again"; readonly token: string }
  | { readonly kind: "inquiry"; readonly token: string; readonly number: number }
  | { readonly kind: "open"; readonly born: string; readonly lock: string }
  | { readonly kind: "broken"; readonly token: string; readonly reason: string }
  | { readonly kind: "proof" };

/** The largest TTL that the options allow. */
const longestTtlMs = 86_400_000;

const grantForm = /^grant (\S+) (\d+) (\d+) (\d+) (\d+)((?:\+\d{1,9})?) ([\da-f]{40}) (.+)$/s;
const againForm = /^again (\S+)$/;
const inquiryForm = /^inquiry (\S+) (\d+)$/;
const openForm = /^open (\d+) (.+)$/s;
const proofForm = /^proof [\da-f]{32}$/;
const brokenMark = "broken ";

/**
 * Reads one message; undefined if any field has another form than the scripts write. It never throws: anyone with the right to
 * publish can send any text, and an error in the handler of a client library ends the process.
 */
export function readMessage(text: string): Message | undefined {
  switch (text.slice(0, text.indexOf(" "))) {
    case "grant":
      return readGrant(text);
    case "again": {
      const token = tokenOf(againForm.exec(text)?.[1]);
      return token === undefined ? undefined : { kind: "again", token };
    }
    case "inquiry":
      return readInquiry(text);
    case "open":
      return readOpen(text);
    case "broken":
      return readBroken(text);
    case "proof":
      return proofForm.test(text) ? { kind: "proof" } : undefined;
    default:
      return undefined;
  }
}

function readGrant(text: string): Message | undefined {
  const [, word, firstDigits, lastDigits, micros, ttl, wait, runId = "", lock = ""] =
    grantForm.exec(text) ?? [];
  const token = tokenOf(word);
  const [first, last] = [numberOf(firstDigits), numberOf(lastDigits)];
  const [serverMicros, ttlMs] = [numberOf(micros), numberOf(ttl)];
  if (token === undefined || first === undefined || last === undefined || last < first || !isLock(lock)) {
    return undefined;
  } else if (serverMicros === undefined || ttlMs === undefined || ttlMs > longestTtlMs) {
    return undefined;
  }
  const waitMs = Number(wait); // "": it counts at once
  return { kind: "grant", grant: { token, first, last, serverMicros, ttlMs, waitMs, runId, lock } };
}

function readInquiry(text: string): Message | undefined {
  const [, word, digits] = inquiryForm.exec(text) ?? [];
  const token = tokenOf(word);
  const number = numberOf(digits);
  return token === undefined || number === undefined ? undefined : { kind: "inquiry", token, number };
}

function readOpen(text: string): Message | undefined {
  const [, born, lock = ""] = openForm.exec(text) ?? [];
  return born === undefined || numberOf(born) === undefined || !isLock(lock)
    ? undefined
    : { kind: "open", born, lock };
}

function readBroken(text: string): Message | undefined {
  const fields = parsed(text.slice(brokenMark.length));
  if (!Array.isArray(fields) || fields.length !== 3) {
    return undefined;
  }
  const [word, lock, reason] = fields as unknown[];
  const token = typeof word === "string" ? tokenOf(word) : undefined;
  return token === undefined || typeof lock !== "string" || !isLock(lock) || typeof reason !== "string"
    ? undefined
    : { kind: "broken", token, reason };
}

function tokenOf(word: string | undefined): string | undefined {
  return word !== undefined && clientOf(word) !== undefined ? word : undefined;
}

/** A whole number that a double represents exactly. */
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
