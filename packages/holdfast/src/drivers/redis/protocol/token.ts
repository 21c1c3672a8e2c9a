import type { LockMode } from "../../../driver.ts";
import { hash32, type Random } from "../../../runtime/random.ts";

/** The parts of a token. */
interface TokenParts {
  readonly clientId: string;
  readonly lockMode: LockMode | undefined;
  readonly ticket: number;
}

/** What a latch counts once. */
interface Attempt {
  readonly key: string;
  /** The caller's own name for its attempt; undefined: it has none. */
  readonly attemptId: string | undefined;
  readonly clientId: string;
}

/**
 * `<random>:<client>:<ticket>`; of a lock that several may hold `<random>:<client>:<share>:<ticket>`. The scripts read a token as
 * lua/common/shared-holders.lua says. Each request makes its own: a token has one owner, for ever.
 */
export function createToken({ clientId, lockMode, ticket }: TokenParts, random: Random): string {
  const mark = lockMode === undefined ? "" : `${markOf(lockMode)}:`;
  return `${random.id()}:${clientId}:${mark}${ticket}`;
}

/** `<attempt>:<client>:0`: a repeat of a named attempt has the same attempt in every process. */
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

const ownForm = /^[\da-f]{32}:([\da-f]{32}):(?:([a-z])[\d/]*:)?\d+$/;

/** The client of a token; undefined: it is not ours. */
export function clientIdOf(token: string): string | undefined {
  return ownForm.exec(token)?.[1];
}
