import type { Columns } from "./model.ts";

/**
 * Nodes are interchangeable, because no rule depends on the name of a node. States that differ only in the order of the nodes are equivalent.
 * The state with its nodes in ascending order represents all of them.
 */
export class Symmetry {
  readonly #columns: Columns;
  readonly #order: number[];
  readonly #scratch: Uint8Array;

  constructor(columns: Columns) {
    this.#columns = columns;
    this.#order = Array.from({ length: columns.count }, (_, column) => column);
    this.#scratch = new Uint8Array(columns.width * columns.count);
  }

  /** Sorts the columns of `state`. */
  merge(state: Uint8Array): void {
    if (this.#sort(state)) {
      const { from, width, count } = this.#columns;
      this.#scratch.set(state.subarray(from, from + width * count));
      for (let rank = 0; rank < count; rank += 1) {
        const at = (this.#order[rank] as number) * width;
        const to = from + rank * width;
        for (let byte = 0; byte < width; byte += 1) {
          state[to + byte] = this.#scratch[at + byte] as number;
        }
      }
    }
  }

  /** Sorts by insertion, because the columns are few. Returns whether the order changes. */
  #sort(state: Uint8Array): boolean {
    const order = this.#order;
    let moves = false;
    for (let slot = 0; slot < order.length; slot += 1) {
      let hole = slot;
      while (hole > 0 && this.#compare(state, order[hole - 1] as number, slot) > 0) {
        order[hole] = order[hole - 1] as number;
        hole -= 1;
        moves = true;
      }
      order[hole] = slot;
    }
    return moves;
  }

  #compare(state: Uint8Array, one: number, other: number): number {
    const { from, width } = this.#columns;
    const a = from + one * width;
    const b = from + other * width;
    for (let byte = 0; byte < width; byte += 1) {
      const difference = (state[a + byte] as number) - (state[b + byte] as number);
      if (difference !== 0) {
        return difference;
      }
    }
    return 0;
  }
}
