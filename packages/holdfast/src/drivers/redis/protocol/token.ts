import type { LockMode } from "../../../driver.ts";
import { hash32, type Random } from "../../../runtime/random.ts";

/** The parts of a token. */
interface TokenParts {
  readonly clientId: string;
  readonly lockMode: LockMode | undefined;
  readonly ticket: number;
}

/** One count-down of a latch. A latch counts each attempt once. */
interface Attempt {
  readonly key: string;
  /** The caller's idempotency key; undefined: none. */
  readonly attemptId: string | undefined;
  readonly clientId: string;
}

/**
 * Creates the token of a request: `<random>:<client>:<ticket>`, or `<random>:<client>:<mode>:<ticket>` for a shared lock.
 * lua/common/shared-holders.lua documents the modes. Each request has its own token, so a token never changes its owner.
 */
export function createToken({ clientId, lockMode, ticket }: TokenParts, random: Random): string {
  const mark = lockMode === undefined ? "" : `${markOf(lockMode)}:`;
  return `${random.id()}:${clientId}:${mark}${ticket}`;
}

/** Creates the token of a count-down: `<attempt>:<client>:0`. Repeats with one `attemptId` have the same `<attempt>` in every process. */
export function attemptToken({ key, attemptId, clientId }: Attempt, random: Random): string {
  const attempt = attemptId === undefined ? random.id() : hash32(key, attemptId);
  return `${attempt}:${clientId}:0`;
}

function markOf(lockMode: LockMode): string {
  if (lockMode.kind === "semaphore") {
    return `${lockMode.hasWaited === true ? "a" : "s"}${lockMode.permits}/${lockMode.limit}`;
  }
  return lockMode.mode === "read" ? "r" : "w";
}

const idLength = 32;
const tokenForm = /^[\da-f]{32}:([\da-f]{32}):(?:([a-z])[\d/]*:)?\d+$/;

/** Whether a token of this library was created by the client with this id. Cheaper than {@link clientIdOf}. */
export function isTokenOf(clientId: string, token: string): boolean {
  return token.startsWith(`:${clientId}:`, idLength);
}

/** The client id in a token; undefined if the text is not a token of this library. */
export function clientIdOf(token: string): string | undefined {
  return tokenForm.exec(token)?.[1];
}

/** The ticket in a token: the arrival of its request, µs since 1970, by the server's clock. The token of a latch has the ticket 0. */
export function ticketOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
