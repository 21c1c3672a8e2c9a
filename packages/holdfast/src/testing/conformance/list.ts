import type { Locks } from "../../locks.ts";
import type { LockState } from "../../lock-state.ts";

/** The state of a lock from `list`, whose pages may be empty; undefined if `list` omits the lock. */
export async function listed(locks: Locks, key: string): Promise<LockState | undefined> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await locks.admin.list({ prefix: key, cursor });
    const found = page.locks.find((lock) => lock.key === key);
    if (found) {
      return found;
    }
    cursor = page.cursor;
  }
  return undefined;
}
