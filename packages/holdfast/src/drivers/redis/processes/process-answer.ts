import type { ProcessHold, ProcessState, ProcessWait } from "../../../processes/process-state.ts";
import { withJson } from "../../../runtime/plain-values.ts";

/** No answer has more `Locks` than this. */
const maxLocks = 1_000;

type Fields = Readonly<Record<string, unknown>>;

/** The body of an answer: the reports of one process as JSON, with the lag of its event loop. */
export function encodeAnswer(states: readonly ProcessState[], lagMs: number): string {
  return JSON.stringify(states.map((state) => ({ ...state, lagMs })));
}

/**
 * Parses the body of an answer, and returns only known fields. Undefined if a field has an unexpected form. Never throws, because any
 * client with the right to publish can send any text.
 */
export function parseAnswer(body: string): ProcessState[] | undefined {
  const states = listOf(parsed(body), parseState);
  return states && states.length <= maxLocks ? states : undefined;
}

function parseState(value: Fields): ProcessState | undefined {
  const { owner, host, pid, version, instance, lagMs, holdCount, waitCount } = value;
  const [holds, waits] = [listOf(value["holds"], parseHold), listOf(value["waits"], parseWait)];
  if (!isText(owner, 512) || !isCount(holdCount) || !isCount(waitCount) || !holds || !waits) {
    return undefined;
  }
  return {
    owner,
    ...(isText(host, 256) && { host }),
    ...(isCount(pid) && { pid }),
    ...(isText(version, 64) && { version }),
    ...(isCount(instance) && { instance }),
    answered: true,
    seenMs: 0,
    ...(isTime(lagMs) && { lagMs }),
    holds,
    holdCount: Math.max(holdCount, holds.length),
    waits,
    waitCount: Math.max(waitCount, waits.length),
  };
}

function parseHold(value: Fields): ProcessHold | undefined {
  if (!isHold(value)) {
    return undefined;
  }
  const { key, kind, mode, permits, owner, reason, labels, fencingToken, localWaiters } = value;
  const { since, heldMs, ttlMs, renewedMs, marginMs } = value;
  return withJson<ProcessHold>({
    key,
    kind,
    ...((mode === "read" || mode === "write") && { mode }),
    ...(isCount(permits) && { permits }),
    owner,
    ...(isText(reason, 1_024) && { reason }),
    ...(isLabels(labels) && { labels }),
    fencingToken: BigInt(fencingToken),
    since,
    heldMs,
    ttlMs,
    renewedMs,
    marginMs,
    localWaiters,
  });
}

/** A hold whose required fields have been checked. */
interface CheckedHold extends Fields {
  readonly key: string;
  readonly kind: ProcessHold["kind"];
  readonly owner: string;
  readonly fencingToken: string;
  readonly since: number;
  readonly heldMs: number;
  readonly ttlMs: number;
  readonly renewedMs: number;
  readonly marginMs: number;
  readonly localWaiters: number;
}

function isHold(value: Fields): value is CheckedHold {
  const { key, kind, owner, fencingToken, localWaiters, since, heldMs, ttlMs, renewedMs, marginMs } = value;
  const hasTimes = [since, heldMs, ttlMs, renewedMs, marginMs].every(isTime);
  const hasFence = typeof fencingToken === "string" && /^\d{1,39}$/.test(fencingToken);
  return (
    isText(key, 512) && isKind(kind) && isText(owner, 512) && hasTimes && hasFence && isCount(localWaiters)
  );
}

function parseWait({ key, kind, count, oldestMs }: Fields): ProcessWait | undefined {
  return isText(key, 512) && isKind(kind) && isCount(count) && isTime(oldestMs)
    ? { key, kind, count, oldestMs }
    : undefined;
}

/** The parsed items; undefined if the value is no array, or if one item is malformed. */
function listOf<T>(value: unknown, parse: (fields: Fields) => T | undefined): T[] | undefined {
  if (!Array.isArray(value)) {
    return undefined;
  }
  const items = (value as unknown[]).map((item) =>
    typeof item === "object" && item !== null ? parse(item as Fields) : undefined,
  );
  return items.every((item) => item !== undefined) ? (items as T[]) : undefined;
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isKind(value: unknown): value is ProcessHold["kind"] {
  return value === "mutex" || value === "read-write" || value === "semaphore";
}

function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.values(value).every((label) => typeof label === "string");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
