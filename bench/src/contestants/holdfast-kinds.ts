import type { Contestant } from "./contestant.ts";
import { permits } from "../run/semaphore-settings.ts";
import { severalOf, severalText } from "../run/several-keys.ts";
import { contestant } from "./holdfast.ts";

const waitOptions = "defaults, but waitMs Infinity";

/** Readers share it; all stand in one queue. */
export const readWrite: Contestant = contestant(`readWrite, ${waitOptions}`, (locks) => {
  const lockOf = heldSession((key) => locks.readWrite(key));
  return (key, options, writes) => lockOf(key)[writes ? "write" : "read"].acquire(options);
});

export const read: Contestant = contestant(`readWrite, only read, ${waitOptions}`, (locks) => {
  const lockOf = heldSession((key) => locks.readWrite(key));
  return (key, options) => lockOf(key).read.acquire(options);
});

/** Each takes one of its permits. */
export const semaphore: Contestant = contestant(`semaphore, limit ${permits}, ${waitOptions}`, (locks) => {
  const lockOf = heldSession((key) => locks.semaphore(key, { limit: permits }));
  return (key, options) => lockOf(key).acquire(options);
});

export const reentrant: Contestant = contestant(`reentrant, ${waitOptions}`, (locks) => {
  const lockOf = heldSession((key) => locks.reentrant(key));
  return (key, options) => lockOf(key).acquire(options);
});

export const several: Contestant = contestant(`all, ${severalText}, ${waitOptions}`, (locks) => {
  const lockOf = heldSession((key) => locks.all(severalOf(key)));
  return (key, options) => lockOf(key).acquire(options);
});

export const election: Contestant = contestant("election: campaign, then resign", (locks) => {
  const electionOf = heldSession((key) => locks.election(key));
  return async (key, options) => {
    const one = electionOf(key);
    await one.campaign(options);
    return { release: () => one.resign() };
  };
});

/** A latch opens once: a new key for each. */
export const latch: Contestant = contestant("latch of 1: countDown, then wait", (locks) => {
  let count = 0;
  return async (key, { ttlMs = 10_000 }) => {
    const one = locks.latch(`${key}:${count++}`, { count: 1, ttlMs });
    await one.countDown();
    return { release: () => one.wait() };
  };
});

/** One for each key, as its users have it. */
function heldSession<Lock>(create: (key: string) => Lock): (key: string) => Lock {
  const locks = new Map<string, Lock>();
  return (key) => {
    const lock = locks.get(key) ?? create(key);
    locks.set(key, lock);
    return lock;
  };
}
