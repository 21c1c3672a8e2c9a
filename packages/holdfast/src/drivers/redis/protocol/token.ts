import type { Share } from "../../../driver.ts";
import { fingerprint, type Random } from "../../../runtime/random.ts";

/** The parts of a token. */
interface Parts {
  readonly clientId: string;
  readonly share: Share | undefined;
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
 * lua/_holders.lua says. Each request makes its own: a token has one owner, for ever.
 */
export function makeToken({ clientId, share, ticket }: Parts, random: Random): string {
  const mark = share === undefined ? "" : `${markOf(share)}:`;
  return `${random.id()}:${clientId}:${mark}${ticket}`;
}

/** `<attempt>:<client>:0`: a repeat of a named attempt has the same attempt in every process. */
export function attemptToken({ key, attemptId, clientId }: Attempt, random: Random): string {
  const attempt = attemptId === undefined ? random.id() : fingerprint(key, attemptId);
  return `${attempt}:${clientId}:0`;
}

function markOf(share: Share): string {
  if (share.kind === "semaphore") {
    return `${share.hasWaited === true ? "a" : "s"}${share.permits}/${share.limit}`;
  }
  return share.mode === "read" ? "r" : "w";
}

const ours = /^[\da-f]{32}:([\da-f]{32}):(?:([a-z])[\d/]*:)?\d+$/;

/** The client of a token; undefined: it is not ours. */
export function clientOf(token: string): string | undefined {
  return ours.exec(token)?.[1];
}
