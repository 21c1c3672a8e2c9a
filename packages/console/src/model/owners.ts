import type { Owner, OwnerHold } from "../api/types.ts";
import { heldMs, type Row } from "./row.ts";

interface Entry {
  readonly holds: OwnerHold[];
  readonly waits: Map<string, Owner["waits"][number]>;
}

/** The owners of the locks that the console knows, for a service without a directory of processes. */
export function ownersOf(rows: readonly Row[], now: number): Owner[] {
  const owners = new Map<string, Entry>();
  const entryOf = (owner: string): Entry => {
    const known: Entry = owners.get(owner) ?? { holds: [], waits: new Map() };
    owners.set(owner, known);
    return known;
  };
  for (const row of rows) {
    const { key, kind, holders, waiters } = row.lock;
    for (const { owner, remainingMs: _, ...holder } of holders) {
      const held = holder.heldMs === undefined ? heldMs(row, now) : holder.heldMs + Math.max(0, now - row.at);
      entryOf(owner).holds.push({ key, kind, ...holder, ...(held !== undefined && { heldMs: held }) });
    }
    for (const { owner } of waiters) {
      const { waits } = entryOf(owner);
      waits.set(key, { key, kind, count: (waits.get(key)?.count ?? 0) + 1 });
    }
  }
  return [...owners].map(([owner, { holds, waits }]) => ({
    owner,
    answered: false,
    holds,
    waits: [...waits.values()],
  }));
}

/** The owners whose name contains a text. */
export function matchingOwners(owners: readonly Owner[], text: string): Owner[] {
  const wanted = text.toLowerCase();
  return owners.filter(({ owner, host = "" }) => `${owner}\n${host}`.toLowerCase().includes(wanted));
}

/** The owners with the most locks, by name, so that they keep their places. */
export function firstOwners(owners: readonly Owner[], most: number): Owner[] {
  return owners
    .toSorted((a, b) => holdCountOf(b) - holdCountOf(a))
    .slice(0, most)
    .toSorted((a, b) => (a.owner < b.owner ? -1 : a.owner > b.owner ? 1 : 0));
}

/** A healthy client renews after a third of the TTL. A difference below this part of the TTL comes from the clocks. */
const clockFraction = 1 / 6;

/** How long ago the last renewal was, ms. Undefined: the hold was not renewed since its grant, or the time is not known. */
export function renewedMsOf({ renewedMs, heldMs: held, ttlMs = 0 }: OwnerHold): number | undefined {
  const isSinceGrant =
    renewedMs !== undefined && held !== undefined && held - renewedMs <= ttlMs * clockFraction;
  return isSinceGrant ? undefined : renewedMs;
}

/** The number of holds of an owner. */
export function holdCountOf({ holds, holdCount }: Owner): number {
  return holdCount ?? holds.length;
}
