import { createHash, randomBytes } from "node:crypto";

/** The only source of chance. Handed in everywhere, so that a simulation replays. */
export interface Random {
  /** 128 random bits as 32 hex digits: unguessable and unique. */
  id(): string;
  /** A number from 0 up to, but not including, 1, for jitter. */
  fraction(): number;
}

const idBytes = 16;
const poolBytes = idBytes * 256;
let pool = Buffer.alloc(0);
let used = poolBytes;

/** The operating system's randomness, asked for 256 ids at a time. */
export const systemRandom: Random = {
  id() {
    if (used >= pool.length) {
      pool = randomBytes(poolBytes);
      used = 0;
    }
    used += idBytes;
    return pool.toString("hex", used - idBytes, used);
  },
  fraction: () => Math.random(),
};

/** `baseMs` lengthened by up to `share` of itself, so that many do not act at once. */
export function jittered(random: Random, baseMs: number, share: number): number {
  return baseMs * (1 + share * random.fraction());
}

/** The same 32 hex digits for the same texts, in every process. */
export function fingerprint(...texts: readonly string[]): string {
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
