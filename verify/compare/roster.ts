import type { Library } from "./library.ts";

const names = [
  "holdfast",
  "redlock",
  "@sesamecare-oss/redlock",
  "redis-semaphore",
  "redlock-universal",
  "@verrou/core",
] as const;

export type LibraryName = (typeof names)[number];

export const libraryNames: readonly LibraryName[] = names;

/** A library is loaded only in the process that runs it. */
const loaders: Readonly<Record<LibraryName, () => Promise<Library>>> = {
  holdfast: async () => (await import("./libraries/holdfast.ts")).holdfast,
  redlock: async () => (await import("./libraries/redlock.ts")).redlock,
  "@sesamecare-oss/redlock": async () => (await import("./libraries/sesamecare-redlock.ts")).sesamecare,
  "redis-semaphore": async () => (await import("./libraries/redis-semaphore.ts")).redisSemaphore,
  "redlock-universal": async () => (await import("./libraries/redlock-universal.ts")).redlockUniversal,
  "@verrou/core": async () => (await import("./libraries/verrou.ts")).verrou,
};

export function isLibraryName(name: string): name is LibraryName {
  return Object.hasOwn(loaders, name);
}

export function loadLibrary(name: LibraryName): Promise<Library> {
  return loaders[name]();
}
