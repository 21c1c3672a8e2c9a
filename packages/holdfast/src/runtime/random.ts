import { createHash, randomBytes } from "node:crypto";

import { systemClock, type Clock } from "./clock.ts";

/** The only source of chance. Handed in everywhere, so that a simulation replays. */
export interface Random {
  /** 128 random bits as 32 hex digits: unguessable and unique. */
  id(): string;
  /** A number from 0 up to, but not including, 1, for jitter. */
  nextFloat(): number;
  /** Throws away what was drawn in advance: a clone of this machine has it, too. Absent: nothing is. */
  refresh?(): void;
}

const idBytes = 16;
const poolBytes = idBytes * 256;
const jumpMs = 50;

/**
 * The operating system's randomness, asked for 256 ids at a time. What is left of them is thrown away when the wall clock jumped: the
 * machine may be a clone that was made from a snapshot, and its twin has them, too.
 */
export function pooledRandom(clock: Clock, draw: (bytes: number) => Buffer = randomBytes): Random {
  let pool: Buffer = Buffer.alloc(0);
  let usedBytes = 0;
  let lead = 0;
  return {
    id() {
      const wallLead = clock.wall() - clock.now();
      if (usedBytes >= pool.length || Math.abs(wallLead - lead) > jumpMs) {
        pool = draw(poolBytes);
        usedBytes = 0;
        lead = wallLead;
      }
      usedBytes += idBytes;
      return pool.toString("hex", usedBytes - idBytes, usedBytes);
    },
    nextFloat: () => Math.random(),
    refresh() {
      usedBytes = pool.length;
    },
  };
}

export const systemRandom: Random = pooledRandom(systemClock);

/** `baseMs` lengthened by up to `share` of itself, so that many do not act at once. */
export function jittered(random: Random, baseMs: number, fraction: number): number {
  return baseMs * (1 + fraction * random.nextFloat());
}

/** How long to pause after so many failures in a row, ms: 50, then twice as long each time, and jittered. */
export function backoffMs(random: Random, failures: number, maxMs = 1_000): number {
  return jittered(random, Math.min(maxMs, 50 * 2 ** Math.min(failures, 10)), 0.5);
}

/** The same 32 hex digits for the same texts, in every process. */
export function hash32(...texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) {
    hash.update(`${Buffer.byteLength(text)}:`).update(text);
  }
  return hash.digest("hex").slice(0, 32);
}

/** By which a server's script cache knows a text. */
export function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
