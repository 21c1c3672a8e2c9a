import type { Hash } from "node:crypto";

import { LockError } from "../errors.ts";
import { systemClock, type Clock } from "./clock.ts";
import { nodeModule } from "./node-modules.ts";
import { utf8Bytes } from "./text.ts";

/** The only source of randomness. It is injected everywhere, so that a simulation can be replayed. */
export interface Random {
  /** 128 random bits as 32 hex digits: unguessable and unique. */
  id(): string;
  /** A number from 0 up to, but not including, 1, for jitter. */
  nextFloat(): number;
  /** Discards random bytes that were drawn in advance, because a clone of this machine has the same bytes. Absent: none are. */
  refresh?(): void;
}

const idBytes = 16;
const poolBytes = idBytes * 256;
const jumpMs = 50;

/**
 * Random ids from the operating system, drawn for 256 ids at a time. If the wall clock has jumped, the remaining bytes are discarded.
 * The machine may then be a clone from a snapshot, and another clone has the same bytes.
 */
export function pooledRandom(clock: Clock, draw: (bytes: number) => Uint8Array = randomBytes): Random {
  let pool: Uint8Array = new Uint8Array(0);
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
      return hexOf(pool, usedBytes - idBytes, usedBytes);
    },
    nextFloat: () => Math.random(),
    refresh() {
      usedBytes = pool.length;
    },
  };
}

function randomBytes(bytes: number): Uint8Array {
  const drawn = crypto.getRandomValues(new Uint8Array(bytes));
  return globalThis.Buffer?.from(drawn.buffer) ?? drawn;
}

/** A `Buffer` has a native method, which takes half the time. */
function hexOf(bytes: Uint8Array, start: number, end: number): string {
  return globalThis.Buffer?.isBuffer(bytes)
    ? bytes.toString("hex", start, end)
    : Array.from(bytes.subarray(start, end), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const systemRandom: Random = pooledRandom(systemClock);

/** `baseMs`, lengthened by a random part of up to `fraction`, so that many clients do not act at once. */
export function jittered(random: Random, baseMs: number, fraction: number): number {
  return baseMs * (1 + fraction * random.nextFloat());
}

/** The pause after a number of failures in a row, ms. It starts at 50 ms, doubles up to `maxMs`, and is jittered. */
export function backoffMs(random: Random, failures: number, maxMs = 1_000): number {
  return jittered(random, Math.min(maxMs, 50 * 2 ** Math.min(failures, 10)), 0.5);
}

/** A hash of texts as 32 hex digits, equal in every process. */
export function hash32(...texts: readonly string[]): string {
  const hash = newHash("sha256");
  for (const text of texts) {
    hash.update(`${utf8Bytes(text).length}:`).update(text);
  }
  return hash.digest("hex").slice(0, 32);
}

/** The hash by which Nacos identifies a content. */
export function md5(text: string): string {
  return newHash("md5").update(text).digest("hex");
}

/** The hash by which a server's script cache identifies a script. */
export function sha1(text: string): string {
  return newHash("sha1").update(text).digest("hex");
}

/** @throws {LockError} `unsupported` in a runtime without `node:crypto` */
function newHash(algorithm: string): Hash {
  const crypto = nodeModule("node:crypto");
  if (!crypto) {
    throw new LockError("The call requires the module `node:crypto`, which this runtime does not have", {
      code: "unsupported",
    });
  }
  return crypto.createHash(algorithm);
}
