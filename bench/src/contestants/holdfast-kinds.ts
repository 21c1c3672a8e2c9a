import type { Contestant } from "./contestant.ts";
import { permits } from "../run/semaphore-settings.ts";
import { severalOf, severalText } from "../run/several-keys.ts";
import { contestant } from "./holdfast.ts";

const waitOptions = "defaults, but waitMs Infinity";

/** Readers share the lock. Readers and writers wait in one queue. */
export const readWrite: Contestant = contestant(`readWrite, ${waitOptions}`, (locks) => {
  const lockOf = reusedByKey((key) => locks.readWrite(key));
  return (key, options, writes) => lockOf(key)[writes ? "write" : "read"].acquire(options);
});

export const read: Contestant = contestant(`readWrite, only read, ${waitOptions}`, (locks) => {
  const lockOf = reusedByKey((key) => locks.readWrite(key));
  return (key, options) => lockOf(key).read.acquire(options);
});

/** Each caller acquires one permit. */
export const semaphore: Contestant = contestant(`semaphore, limit ${permits}, ${waitOptions}`, (locks) => {
  const lockOf = reusedByKey((key) => locks.semaphore(key, { limit: permits }));
  return (key, options) => lockOf(key).acquire(options);
});

export const reentrant: Contestant = contestant(`reentrant, ${waitOptions}`, (locks) => {
  const lockOf = reusedByKey((key) => locks.reentrant(key));
  return (key, options) => lockOf(key).acquire(options);
});

export const several: Contestant = contestant(`all, ${severalText}, ${waitOptions}`, (locks) => {
  const lockOf = reusedByKey((key) => locks.all(severalOf(key)));
  return (key, options) => lockOf(key).acquire(options);
});

export const election: Contestant = contestant("election: campaign, then resign", (locks) => {
  const electionOf = reusedByKey((key) => locks.election(key));
  return async (key, options) => {
    const one = electionOf(key);
    await one.campaign(options);
    return { release: () => one.resign() };
  };
});

/** A latch opens only once, so each turn uses a new key. */
export const latch: Contestant = contestant("latch of 1: countDown, then wait", (locks) => {
  let count = 0;
  return async (key, { ttlMs = 10_000 }) => {
    const one = locks.latch(`${key}:${count++}`, { count: 1, ttlMs });
    await one.countDown();
    return { release: () => one.wait() };
  };
});

/** Creates one lock object for each key and reuses it, as programs do. */
function reusedByKey<Lock>(create: (key: string) => Lock): (key: string) => Lock {
  const locks = new Map<string, Lock>();
  return (key) => {
    const lock = locks.get(key) ?? create(key);
    locks.set(key, lock);
    return lock;
  };
}
