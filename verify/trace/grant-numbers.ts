import type { NodeState } from "../sim/run/traced-redis.ts";

/** Which token had which number on which nodes. */
export class GrantNumbers {
  readonly #nodes = new Map<number, Map<string, Set<number>>>();

  record(node: number, { holder, fencingNumber }: NodeState): void {
    if (holder !== undefined) {
      const tokens = this.#nodes.get(fencingNumber) ?? new Map<string, Set<number>>();
      this.#nodes.set(fencingNumber, tokens);
      tokens.set(holder, (tokens.get(holder) ?? new Set()).add(node));
    }
  }

  /** The token that had the number on most nodes; undefined: it was none's first, as a number in a block. */
  majorityHolder(fencingNumber: number): string | undefined {
    const tokens = [...(this.#nodes.get(fencingNumber) ?? [])];
    return tokens.sort(([, one], [, other]) => other.size - one.size)[0]?.[0];
  }
}
