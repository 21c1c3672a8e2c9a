import type { NodeState } from "../sim/run/traced-redis.ts";

/** The tokens that had each number, and on which nodes. */
export class GrantNumbers {
  readonly #nodes = new Map<number, Map<string, Set<number>>>();

  record(node: number, { holder, fencingNumber }: NodeState): void {
    if (holder !== undefined) {
      const tokens = this.#nodes.get(fencingNumber) ?? new Map<string, Set<number>>();
      this.#nodes.set(fencingNumber, tokens);
      tokens.set(holder, (tokens.get(holder) ?? new Set()).add(node));
    }
  }

  /** The token that had the number on most nodes; undefined: the number was reserved for a hand-over. */
  majorityHolder(fencingNumber: number): string | undefined {
    const tokens = [...(this.#nodes.get(fencingNumber) ?? [])];
    return tokens.sort(([, one], [, other]) => other.size - one.size)[0]?.[0];
  }
}
