import type { LockState } from "../../../../lock-state.ts";
import {
  sharedHolderOf,
  type LockSnapshot,
  type SharedLockSnapshot,
  type SharedHolderEntry,
} from "../../server/lock-snapshot.ts";
import { newestMetadata } from "../../protocol/metadata.ts";
import { majorityReached } from "../majority.ts";

/** Of a lock that several may hold: who holds it by what a majority of the nodes says. */
export class SharedView {
  readonly kind: SharedLockSnapshot["kind"];
  readonly limit: number;
  readonly holders: readonly SharedHolderEntry[];

  private constructor({ kind, limit }: SharedLockSnapshot, holders: readonly SharedHolderEntry[]) {
    this.kind = kind;
    this.limit = limit;
    this.holders = holders;
  }

  /** Undefined: no node says that it is such a lock. */
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

  describe(
    ownerOf: (token: string) => string,
  ): Pick<LockState, "kind" | "limit" | "holders" | "remainingMs"> {
    const { kind, limit } = this;
    const holders = this.holders.map((holder) => sharedHolderOf(kind, holder, ownerOf(holder.token)));
    const remaining = holders.map(({ remainingMs = 0 }) => remainingMs);
    return { kind, limit, holders, remainingMs: remaining.length === 0 ? null : Math.max(...remaining) };
  }
}

/** What the nodes say of one holder; undefined: less than a majority has it. Of different numbers the most told one is the lease's. */
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
