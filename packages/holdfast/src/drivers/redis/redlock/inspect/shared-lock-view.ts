import type { LockState } from "../../../../lock-state.ts";
import {
  sharedHolderOf,
  type Facts,
  type SharedFacts,
  type SharedHolder,
} from "../../server/lock-snapshot.ts";
import { latestWords } from "../../protocol/metadata.ts";
import { reachedByMajority } from "../majority.ts";

/** Of a lock that several may hold: who holds it by what a majority of the nodes says. */
export class SharedView {
  readonly kind: SharedFacts["kind"];
  readonly limit: number;
  readonly holders: readonly SharedHolder[];

  private constructor({ kind, limit }: SharedFacts, holders: readonly SharedHolder[]) {
    this.kind = kind;
    this.limit = limit;
    this.holders = holders;
  }

  /** Undefined: no node says that it is such a lock. */
  static of(answered: readonly Facts[], majority: number): SharedView | undefined {
    const told = answered.map(({ shared }) => shared).filter((shared) => shared !== undefined);
    const [first] = told;
    const tokens = new Set(told.flatMap(({ holders }) => holders.map(({ token }) => token)));
    const holders = [...tokens].flatMap((token) => {
      const grants = told.flatMap((one) => one.holders.filter((holder) => holder.token === token));
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
function merged(grants: readonly SharedHolder[], majority: number): SharedHolder | undefined {
  const [one] = grants;
  const remainingMs = reachedByMajority(
    grants.map((grant) => grant.remainingMs),
    majority,
  );
  if (!one || remainingMs === undefined) {
    return undefined;
  }
  const times = (number: bigint): number =>
    grants.filter(({ fencingToken }) => fencingToken === number).length;
  const { fencingToken } = grants.reduce((best, other) =>
    times(other.fencingToken) > times(best.fencingToken) ? other : best,
  );
  const weight = reachedByMajority(
    grants.map((grant) => grant.weight),
    majority,
  );
  const words = latestWords(grants.map((grant) => grant.words));
  return { ...one, fencingToken, remainingMs, weight: weight ?? one.weight, words };
}
