interface Member {
  readonly name: string;
  readonly score: number;
}

/** Members in the order of their scores, and members with equal scores in the order of their bytes, as in Redis. */
export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** Adds a member, or changes its score. */
  put(score: number, name: string): void {
    this.remove(name);
    const member = { name, score };
    this.#scores.set(name, score);
    this.#members.splice(this.#indexOf(member), 0, member);
  }

  score(name: string): number | undefined {
    return this.#scores.get(name);
  }

  remove(name: string): boolean {
    const rank = this.rank(name);
    if (rank === undefined) {
      return false;
    }
    this.#scores.delete(name);
    this.#members.splice(rank, 1);
    return true;
  }

  /** The rank of the member, from 0. */
  rank(name: string): number | undefined {
    const score = this.#scores.get(name);
    return score === undefined ? undefined : this.#indexOf({ name, score });
  }

  entries(): [member: string, score: number][] {
    return this.#members.map(({ name, score }) => [name, score]);
  }

  /** The index of the member, or the index at which to insert the member. */
  #indexOf(target: Member): number {
    let low = 0;
    let high = this.#members.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#members[middle] as Member, target)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

function isBefore(one: Member, other: Member): boolean {
  return one.score === other.score ? one.name < other.name : one.score < other.score;
}
