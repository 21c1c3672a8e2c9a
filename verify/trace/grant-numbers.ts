import type { NodeView } from "../sim/run/traced-redis.ts";

/** Which token had which number on which nodes. */
export class GrantNumbers {
  readonly #nodes = new Map<number, Map<string, Set<number>>>();

  note(node: number, { holder, number }: NodeView): void {
    if (holder !== undefined) {
      const tokens = this.#nodes.get(number) ?? new Map<string, Set<number>>();
      this.#nodes.set(number, tokens);
      tokens.set(holder, (tokens.get(holder) ?? new Set()).add(node));
    }
  }

  /** The token that had the number on most nodes; undefined: it was none's first, as a number in a block. */
  ofMost(number: number): string | undefined {
    const tokens = [...(this.#nodes.get(number) ?? [])];
    return tokens.sort(([, one], [, other]) => other.size - one.size)[0]?.[0];
  }
}
