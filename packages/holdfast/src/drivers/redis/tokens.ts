import type { Share } from "../../driver.ts";
import { fingerprint, type Random } from "../../random.ts";

/** The parts of a token. */
interface Parts {
  readonly key: string;
  /** The caller's own name for its attempt; undefined: it has none. */
  readonly attemptId: string | undefined;
  readonly clientId: string;
  readonly share: Share | undefined;
  readonly ticket: number;
}

/**
 * `<attempt>:<client>:<ticket>`; of a lock that several may hold `<attempt>:<client>:<share>:<ticket>`. The scripts read a token as
 * lua/_holders.lua says. A repeat of a named attempt has the same attempt in every process.
 */
export function makeToken({ key, attemptId, clientId, share, ticket }: Parts, random: Random): string {
  const mark = share === undefined ? "" : `${markOf(share)}:`;
  const attempt =
    attemptId === undefined ? random.id() : fingerprint(key, attemptId, ...(share ? [wishOf(share)] : []));
  return `${attempt}:${clientId}:${mark}${ticket}`;
}

/** What a repeat asks for as well. Another limit may have been set between the two. */
function wishOf(share: Share): string {
  return share.kind === "semaphore" ? `s${share.permits}:` : `${markOf(share)}:`;
}

function markOf(share: Share): string {
  if (share.kind === "semaphore") {
    return `s${share.permits}/${share.limit}`;
  }
  return share.mode === "read" ? "r" : "w";
}

const ours = /^[\da-f]{32}:([\da-f]{32}):(?:([a-z])[\d/]*:)?\d+$/;

/** The client of a token; undefined: it is not ours. */
export function clientOf(token: string): string | undefined {
  return ours.exec(token)?.[1];
}
