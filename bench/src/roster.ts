import type { Contestant } from "./contestant.ts";

/** The names of peers are those of their packages. */
export const peers = [
  "redlock",
  "redis-semaphore",
  "@verrou/core",
  "redlock-universal",
  "@sesamecare-oss/redlock",
] as const;

export type Peer = (typeof peers)[number];
export type Entrant = "raw" | Peer | "holdfast" | "holdfast-strict";

/** Imported only in the process that runs it. */
const loaders: Readonly<Record<Entrant, () => Promise<Contestant>>> = {
  raw: async () => (await import("./contestants/raw.ts")).raw,
  redlock: async () => (await import("./contestants/redlock.ts")).redlock,
  "redis-semaphore": async () => (await import("./contestants/redis-semaphore.ts")).redisSemaphore,
  "@verrou/core": async () => (await import("./contestants/verrou.ts")).verrou,
  "redlock-universal": async () => (await import("./contestants/redlock-universal.ts")).redlockUniversal,
  "@sesamecare-oss/redlock": async () => (await import("./contestants/sesamecare-redlock.ts")).sesamecare,
  holdfast: async () => (await import("./contestants/holdfast.ts")).holdfast,
  "holdfast-strict": async () => (await import("./contestants/holdfast.ts")).holdfastStrict,
};

export async function loadContestant(name: string): Promise<Contestant> {
  const load = Object.hasOwn(loaders, name) ? loaders[name as Entrant] : undefined;
  if (!load) throw new RangeError(`Expected a contestant of ${Object.keys(loaders).join(", ")}, got ${name}`);
  return load();
}

export function isPeer(name: string): name is Peer {
  return (peers as readonly string[]).includes(name);
}
