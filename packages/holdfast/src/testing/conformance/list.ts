import type { Locks } from "../../locks.ts";
import type { LockState } from "../../lock-state.ts";

/** The lock as a list has it, of which some pages may be empty. */
export async function listed(locks: Locks, key: string): Promise<LockState | undefined> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await locks.list({ prefix: key, cursor });
    const found = page.locks.find((lock) => lock.key === key);
    if (found) {
      return found;
    }
    cursor = page.cursor;
  }
  return undefined;
}
