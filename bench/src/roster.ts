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

/** Peers once more, set up otherwise. */
type Variant = "redlock-tries" | "@sesamecare-oss/redlock-tries" | "redis-semaphore-semaphore";

const variants: Readonly<Record<Variant, Peer>> = {
  "redlock-tries": "redlock",
  "@sesamecare-oss/redlock-tries": "@sesamecare-oss/redlock",
  "redis-semaphore-semaphore": "redis-semaphore",
};

/** Ours, and its other set-ups and kinds of lock. */
type Own = "holdfast" | "holdfast-strict" | "holdfast-read-write" | "holdfast-semaphore";

export type Entrant = "raw" | Peer | Variant | Own;

/** On one server, or on the nodes of a quorum. */
export type Ground = "server" | "quorum";

type Loaders = Readonly<Partial<Record<Entrant, () => Promise<Contestant>>>>;

/** Imported only in the process that runs it. */
const onServer: Loaders = {
  raw: async () => (await import("./contestants/raw.ts")).raw,
  redlock: async () => (await import("./contestants/redlock.ts")).redlock,
  "redis-semaphore": async () => (await import("./contestants/redis-semaphore.ts")).redisSemaphore,
  "@verrou/core": async () => (await import("./contestants/verrou.ts")).verrou,
  "redlock-universal": async () => (await import("./contestants/redlock-universal.ts")).redlockUniversal,
  "@sesamecare-oss/redlock": async () => (await import("./contestants/sesamecare-redlock.ts")).sesamecare,
  holdfast: async () => (await import("./contestants/holdfast.ts")).holdfast,
  "holdfast-strict": async () => (await import("./contestants/holdfast.ts")).holdfastStrict,
  "holdfast-read-write": async () => (await import("./contestants/holdfast.ts")).holdfastReadWrite,
  "redis-semaphore-semaphore": async () =>
    (await import("./contestants/redis-semaphore.ts")).redisSemaphoreSemaphore,
  "holdfast-semaphore": async () => (await import("./contestants/holdfast.ts")).holdfastSemaphore,
};

const onQuorum: Loaders = {
  redlock: async () => (await import("./contestants/quorum/redlock.ts")).redlock,
  "redlock-tries": async () => (await import("./contestants/quorum/redlock.ts")).redlockTries,
  "redis-semaphore": async () => (await import("./contestants/quorum/redis-semaphore.ts")).redisSemaphore,
  "redlock-universal": async () =>
    (await import("./contestants/quorum/redlock-universal.ts")).redlockUniversal,
  "@sesamecare-oss/redlock": async () =>
    (await import("./contestants/quorum/sesamecare-redlock.ts")).sesamecare,
  "@sesamecare-oss/redlock-tries": async () =>
    (await import("./contestants/quorum/sesamecare-redlock.ts")).sesamecareTries,
  holdfast: async () => (await import("./contestants/quorum/holdfast.ts")).holdfast,
};

const loadersOn: Readonly<Record<Ground, Loaders>> = { server: onServer, quorum: onQuorum };

export async function loadContestant(name: string, ground: Ground): Promise<Contestant> {
  const loaders = loadersOn[ground];
  const load = Object.hasOwn(loaders, name) ? loaders[name as Entrant] : undefined;
  if (!load) throw new RangeError(`Expected a contestant of ${Object.keys(loaders).join(", ")}, got ${name}`);
  return load();
}

/** Whether it can take a lock on a majority of several servers. */
export function hasQuorum(entrant: Entrant): boolean {
  return Object.hasOwn(onQuorum, entrant);
}

/** The package that an entrant runs. */
export function packageOf(entrant: Entrant): Peer | "ioredis" | "holdfast" {
  if (entrant === "raw") return "ioredis";
  if (entrant.startsWith("holdfast")) return "holdfast";
  return Object.hasOwn(variants, entrant) ? variants[entrant as Variant] : (entrant as Peer);
}

/** With the other set-ups of each that can lock a majority, after it. */
export function withVariants(entrants: readonly Entrant[]): readonly Entrant[] {
  const others = (Object.keys(variants) as Variant[]).filter(hasQuorum);
  return entrants.flatMap((entrant) => [entrant, ...others.filter((one) => variants[one] === entrant)]);
}

/** The semaphores of those that have one. */
export function semaphoresOf(entrants: readonly Entrant[]): readonly Entrant[] {
  return entrants.flatMap((entrant): Entrant[] => {
    if (entrant === "redis-semaphore") return ["redis-semaphore-semaphore"];
    return entrant === "holdfast" ? ["holdfast-semaphore"] : [];
  });
}

export function isPeer(name: string): name is Peer {
  return (peers as readonly string[]).includes(name);
}
