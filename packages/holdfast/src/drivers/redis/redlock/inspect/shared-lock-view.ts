import type { LockState } from "../../../../lock-state.ts";
import {
  sharedHolderOf,
  type LockSnapshot,
  type SharedLockSnapshot,
  type SharedHolderEntry,
} from "../../server/lock-snapshot.ts";
import { newestMetadata } from "../../protocol/metadata.ts";
import { majorityReached } from "../majority.ts";

/** The holders of a shared lock, by a majority of the nodes. */
export class SharedView {
  readonly kind: SharedLockSnapshot["kind"];
  readonly limit: number;
  readonly holders: readonly SharedHolderEntry[];

  private constructor({ kind, limit }: SharedLockSnapshot, holders: readonly SharedHolderEntry[]) {
    this.kind = kind;
    this.limit = limit;
    this.holders = holders;
  }

  /** Undefined: no node reports a shared lock. */
  static of(answered: readonly LockSnapshot[], majority: number): SharedView | undefined {
    const reported = answered.map(({ shared }) => shared).filter((shared) => shared !== undefined);
    const [first] = reported;
    const tokens = new Set(reported.flatMap(({ holders }) => holders.map(({ token }) => token)));
    const holders = [...tokens].flatMap((token) => {
      const grants = reported.flatMap((snapshot) =>
        snapshot.holders.filter((holder) => holder.token === token),
      );
      const holder = merged(grants, majority);
      return holder ? [holder] : [];
    });
    return first && new SharedView(first, holders);
  }

  /** @param nowMs the servers' clock, ms since 1970 */
  describe(
    ownerOf: (token: string) => string,
    nowMs: number,
  ): Pick<LockState, "kind" | "limit" | "holders" | "remainingMs"> {
    const { kind, limit } = this;
    const holders = this.holders.map((holder) => sharedHolderOf(kind, holder, ownerOf(holder.token), nowMs));
    const remaining = holders.map(({ remainingMs = 0 }) => remainingMs);
    return { kind, limit, holders, remainingMs: remaining.length === 0 ? null : Math.max(...remaining) };
  }
}

/** The holder by all nodes; undefined: less than a majority has the holder. Of different numbers, the most reported is the lease's. */
function merged(grants: readonly SharedHolderEntry[], majority: number): SharedHolderEntry | undefined {
  const [snapshot] = grants;
  const remainingMs = majorityReached(
    grants.map((grant) => grant.remainingMs),
    majority,
  );
  if (!snapshot || remainingMs === undefined) {
    return undefined;
  }
  const times = (number: bigint): number =>
    grants.filter(({ fencingToken }) => fencingToken === number).length;
  const { fencingToken } = grants.reduce((best, other) =>
    times(other.fencingToken) > times(best.fencingToken) ? other : best,
  );
  const weight = majorityReached(
    grants.map((grant) => grant.weight),
    majority,
  );
  const info = newestMetadata(grants.map((grant) => grant.info));
  return { ...snapshot, fencingToken, remainingMs, weight: weight ?? snapshot.weight, info };
}
