import type { Contestant, Session } from "../contestants/contestant.ts";
import { isEngine, type Engine } from "../engines/engine.ts";
import { clientOf, isRival, onEngines, rivals, type Rival } from "./engine-contestants.ts";

/** The names of peers are those of their packages. */
export const peers = [
  "redlock",
  "redis-semaphore",
  "@verrou/core",
  "redlock-universal",
  "@sesamecare-oss/redlock",
] as const;

export type Peer = (typeof peers)[number];

/** Further set-ups of the peers: other settings, or another kind of lock. */
const variants = {
  "redlock-tries": "redlock",
  "@sesamecare-oss/redlock-tries": "@sesamecare-oss/redlock",
  "redis-semaphore-semaphore": "redis-semaphore",
  "redlock-several": "redlock",
  "redlock-universal-several": "redlock-universal",
  "@sesamecare-oss/redlock-several": "@sesamecare-oss/redlock",
} as const;

type Variant = keyof typeof variants;

/** Holdfast with its defaults, with other settings, with other kinds of lock, and over HTTP. */
type Own = "holdfast" | `holdfast-${"strict" | "far" | "read-write" | Kind | "service"}`;

type Kind = "read" | "write" | "semaphore" | "reentrant" | "several" | "election" | "latch";

/** The baselines: commands and requests without a library. */
type Floor = "raw" | "raw-several" | "bare-http";

export type ContestantName = Floor | Peer | Variant | Own | Rival;

/** Whether a contestant runs on one Redis server or on the nodes of a quorum. */
export type RedisTopology = "server" | "quorum";

export type Topology = RedisTopology | Engine;

type Loaders = Readonly<Partial<Record<ContestantName, () => Promise<Contestant>>>>;

/** Each contestant is imported only in the process that runs it. */
const onServer: Loaders = {
  raw: async () => (await import("../contestants/raw.ts")).raw,
  redlock: async () => (await import("../contestants/redlock.ts")).redlock,
  "redis-semaphore": async () => (await import("../contestants/redis-semaphore.ts")).redisSemaphore,
  "@verrou/core": async () => (await import("../contestants/verrou.ts")).verrou,
  "redlock-universal": async () => (await import("../contestants/redlock-universal.ts")).redlockUniversal,
  "@sesamecare-oss/redlock": async () => (await import("../contestants/sesamecare-redlock.ts")).sesamecare,
  holdfast: async () => (await import("../contestants/holdfast.ts")).holdfast,
  "holdfast-strict": async () => (await import("../contestants/holdfast.ts")).holdfastStrict,
  "redis-semaphore-semaphore": async () =>
    (await import("../contestants/redis-semaphore.ts")).redisSemaphoreSemaphore,
  "raw-several": async () => (await import("../contestants/raw.ts")).rawMany,
  "redlock-several": async () => (await import("../contestants/redlock.ts")).redlockSeveral,
  "redlock-universal-several": async () =>
    (await import("../contestants/redlock-universal.ts")).redlockUniversalSeveral,
  "@sesamecare-oss/redlock-several": async () =>
    (await import("../contestants/sesamecare-redlock.ts")).sesamecareSeveral,
  "holdfast-read-write": async () => (await import("../contestants/holdfast-kinds.ts")).readWrite,
  "holdfast-read": async () => (await import("../contestants/holdfast-kinds.ts")).read,
  // The load of this suite has no readers, so all turns write.
  "holdfast-write": async () => (await import("../contestants/holdfast-kinds.ts")).readWrite,
  "holdfast-semaphore": async () => (await import("../contestants/holdfast-kinds.ts")).semaphore,
  "holdfast-reentrant": async () => (await import("../contestants/holdfast-kinds.ts")).reentrant,
  "holdfast-several": async () => (await import("../contestants/holdfast-kinds.ts")).several,
  "holdfast-election": async () => (await import("../contestants/holdfast-kinds.ts")).election,
  "holdfast-latch": async () => (await import("../contestants/holdfast-kinds.ts")).latch,
};

const onQuorum: Loaders = {
  redlock: async () => (await import("../contestants/quorum/redlock.ts")).redlock,
  "redlock-tries": async () => (await import("../contestants/quorum/redlock.ts")).redlockTries,
  "redis-semaphore": async () => (await import("../contestants/quorum/redis-semaphore.ts")).redisSemaphore,
  "redlock-universal": async () =>
    (await import("../contestants/quorum/redlock-universal.ts")).redlockUniversal,
  "@sesamecare-oss/redlock": async () =>
    (await import("../contestants/quorum/sesamecare-redlock.ts")).sesamecare,
  "@sesamecare-oss/redlock-tries": async () =>
    (await import("../contestants/quorum/sesamecare-redlock.ts")).sesamecareTries,
  holdfast: async () => (await import("../contestants/quorum/holdfast.ts")).holdfast,
  "holdfast-far": async () => (await import("../contestants/quorum/holdfast.ts")).holdfastFar,
};

const loadersOn: Readonly<Record<RedisTopology, Loaders>> = { server: onServer, quorum: onQuorum };

/** These contestants run in processes that their suites start. */
const startedBySuites = ["bare-http", "holdfast-service"] as const satisfies readonly ContestantName[];

export const contestants: readonly string[] = [
  ...new Set([...Object.keys(onServer), ...Object.keys(onQuorum), ...startedBySuites, ...rivals]),
];

/** @param address the ports of Redis servers, separated by commas, or the address of a server of another engine */
export async function openContestant(
  name: string,
  topology: string,
  address: string,
): Promise<{ readonly settings: string; readonly session: Session }> {
  if (isEngine(topology)) {
    const contestant = await load(onEngines[topology], name);
    return { settings: contestant.settings, session: await contestant.open(address) };
  }
  const contestant = await load(loadersOn[topology as RedisTopology], name);
  const [first = Number.NaN, ...others] = address.split(",").map(Number);
  return { settings: contestant.settings, session: await contestant.open([first, ...others]) };
}

async function load<Any>(loaders: Readonly<Record<string, () => Promise<Any>>>, name: string): Promise<Any> {
  const found = Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  if (!found)
    throw new RangeError(`Expected a contestant of ${Object.keys(loaders).join(", ")}, got ${name}`);
  return found();
}

/** Whether the contestant can lock on a majority of several servers. */
export function hasQuorum(contestant: ContestantName): boolean {
  return Object.hasOwn(onQuorum, contestant);
}

/** The package that a contestant runs. */
export function packageOf(
  contestant: ContestantName,
): Peer | "ioredis" | "holdfast" | "node" | ReturnType<typeof clientOf> {
  if (isRival(contestant)) return clientOf(contestant);
  if (contestant === "bare-http") return "node";
  if (contestant.startsWith("raw")) return "ioredis";
  if (contestant.startsWith("holdfast")) return "holdfast";
  return Object.hasOwn(variants, contestant) ? variants[contestant as Variant] : (contestant as Peer);
}

/** Adds after each contestant its other set-ups that can lock on a majority. */
export function withVariants(contestants: readonly ContestantName[]): readonly ContestantName[] {
  const others = (Object.keys(variants) as Variant[]).filter(hasQuorum);
  return contestants.flatMap((contestant) => [
    contestant,
    ...others.filter((one) => variants[one] === contestant),
  ]);
}

/** Adds after each contestant its other kinds of lock. */
export function withKinds(contestants: readonly ContestantName[]): readonly ContestantName[] {
  return contestants.flatMap((contestant) => [contestant, ...(kindContestants[contestant] ?? [])]);
}

const kindContestants: Readonly<Partial<Record<ContestantName, readonly ContestantName[]>>> = {
  raw: ["raw-several"],
  redlock: ["redlock-several"],
  "redis-semaphore": ["redis-semaphore-semaphore"],
  "redlock-universal": ["redlock-universal-several"],
  "@sesamecare-oss/redlock": ["@sesamecare-oss/redlock-several"],
  holdfast: [
    "holdfast-reentrant",
    "holdfast-read",
    "holdfast-write",
    "holdfast-semaphore",
    "holdfast-several",
    "holdfast-election",
    "holdfast-latch",
  ],
};

/** The semaphores of the contestants that have one. */
export function semaphoresOf(contestants: readonly ContestantName[]): readonly ContestantName[] {
  return contestants.flatMap((contestant): ContestantName[] => {
    if (contestant === "redis-semaphore") return ["redis-semaphore-semaphore"];
    return contestant === "holdfast" ? ["holdfast-semaphore"] : [];
  });
}

export function isPeer(name: string): name is Peer {
  return (peers as readonly string[]).includes(name);
}
