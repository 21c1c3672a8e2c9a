import type { Holder } from "holdfast";

/** One hold of a key, from its grant to its end. */
export interface Hold {
  readonly key: string;
  readonly owner: string;
  readonly fencingToken?: string;
  /** Milliseconds since 1970, by the engine's clock if the engine reports it. */
  readonly since: number;
  /** Null: the hold lasts. */
  readonly until: number | null;
  readonly end?: "released" | "expired" | "broken";
  readonly reason?: string;
}

const maxEnds = 1_000;
const maxEndsOfKey = 50;

/** The last ends of holds, at most 1 000, and at most 50 of one key. The oldest go first. */
export class HoldHistory {
  readonly #ends: Hold[] = [];
  readonly #counts = new Map<string, number>();

  add(hold: Hold): void {
    const count = this.#counts.get(hold.key) ?? 0;
    if (count >= maxEndsOfKey) {
      this.#remove(this.#ends.findIndex(({ key }) => key === hold.key));
    } else if (this.#ends.length >= maxEnds) {
      this.#remove(0);
    }
    this.#ends.push(hold);
    this.#counts.set(hold.key, (this.#counts.get(hold.key) ?? 0) + 1);
  }

  /** The ends of the key, newest first. */
  of(key: string): Hold[] {
    return this.#ends.filter((hold) => hold.key === key).reverse();
  }

  clear(): void {
    this.#ends.length = 0;
    this.#counts.clear();
  }

  #remove(index: number): void {
    const [removed] = this.#ends.splice(index, 1);
    if (removed) {
      const count = (this.#counts.get(removed.key) ?? 1) - 1;
      if (count === 0) {
        this.#counts.delete(removed.key);
      } else {
        this.#counts.set(removed.key, count);
      }
    }
  }
}

export function holdOf(key: string, holder: Holder, since: number): Hold {
  const { owner, fencingToken, reason } = holder;
  return {
    key,
    owner,
    ...(fencingToken !== undefined && { fencingToken: fencingToken.toString() }),
    since,
    until: null,
    ...(reason !== undefined && { reason }),
  };
}
