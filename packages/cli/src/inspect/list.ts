import type { Locks, LockState } from "holdfast";

import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { withEngine } from "../with-engine.ts";
import { columns, row } from "./describe.ts";
import { table } from "./table.ts";

/** The sort orders of a list. */
const sortOrders = ["key", "age", "left", "waiting", "owner"] as const;
export type SortOrder = (typeof sortOrders)[number];

export interface ListOptions {
  readonly target: Target;
  readonly prefix: string;
  readonly onlyContended: boolean;
  readonly onlyStale: boolean;
  readonly owner: string | undefined;
  readonly sort: SortOrder;
  readonly json: boolean;
}

/** Lists the held locks. */
export function list(options: ListOptions): Promise<number> {
  return withEngine(options.target, undefined, async ({ locks }, signal) => {
    const found: LockState[] = [];
    for await (const state of allLocks(locks, options.prefix)) {
      signal.throwIfAborted();
      if (matches(state, options)) found.push(state);
    }
    found.sort(orders[options.sort]);
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ version: 1, locks: found })}\n`
        : `${table([columns, ...found.map(row)])}\n`,
    );
    return exitCodes.done;
  });
}

/** All held locks, read page by page. */
export async function* allLocks(locks: Locks, prefix: string): AsyncGenerator<LockState> {
  let cursor: string | undefined;
  const seen = new Set<string>();
  do {
    const page = await locks.admin.list({ prefix, limit: 1_000, cursor });
    for (const state of page.locks) {
      // A scan may return a key twice while the engine's table grows.
      if (!seen.has(state.key)) yield state;
      seen.add(state.key);
    }
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
}

/** Whether the lock has an unknown holder, or no expiry. Such a lock may never be released. */
function isStale({ holders, remainingMs, remaining }: LockState): boolean {
  return (
    remaining === undefined && holders.some((holder) => holder.owner === "unknown" || remainingMs === null)
  );
}

/** The comparisons of the sort orders, shared by all commands. */
const orders: Readonly<Record<SortOrder, (a: LockState, b: LockState) => number>> = {
  key: (a, b) => compare(a.key, b.key),
  age: (a, b) => (b.holders[0]?.heldMs ?? 0) - (a.holders[0]?.heldMs ?? 0) || compare(a.key, b.key),
  left: (a, b) => (a.remainingMs ?? Infinity) - (b.remainingMs ?? Infinity) || compare(a.key, b.key),
  waiting: (a, b) => b.waiterCount - a.waiterCount || compare(a.key, b.key),
  owner: (a, b) => compare(a.holders[0]?.owner ?? "", b.holders[0]?.owner ?? "") || compare(a.key, b.key),
};

function matches(state: LockState, { onlyContended, onlyStale, owner }: ListOptions): boolean {
  return (
    (!onlyContended || state.waiterCount > 0) &&
    (!onlyStale || isStale(state)) &&
    (owner === undefined || state.holders.some((holder) => holder.owner.includes(owner)))
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
