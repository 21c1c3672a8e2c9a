import type { Model } from "./model.ts";
import type { StateStore } from "./state-store.ts";

/** A state after the end of all faults with a waiter that is never served. */
export interface StuckState {
  readonly index: number;
  readonly invariant: string;
  /** An endless continuation, or one that ends where no step is possible. */
  readonly continuation: readonly number[];
}

/** The steps that also happen without faults. Every waiter must be served by every order of these steps, and not only by some order. */
export class FaultFreeSteps {
  readonly #from: NumberList = new NumberList();
  readonly #to: NumberList = new NumberList();

  get memory(): number {
    return this.#from.memory + this.#to.memory;
  }

  add(from: number, to: number): void {
    this.#from.add(from);
    this.#to.add(to);
  }

  /**
   * A state is settled if it has no waiter, or if a step is possible and all steps lead to settled states. From any other state a waiter may
   * wait forever, because no step is possible, or an endless cycle is.
   * @param expanded the number of states whose successors were visited; the other states count as settled
   */
  firstStuck(model: Model, store: StateStore, expanded: number): StuckState | undefined {
    const edges = this.#edgesFrom(expanded);
    const isSettled = this.#markSettled(model, store, expanded, edges);
    let index = 0;
    while (index < expanded && isSettled[index] === 1) {
      index += 1;
    }
    return index === expanded ? undefined : this.#findCycle(index, isSettled);
  }

  #markSettled(model: Model, store: StateStore, expanded: number, edges: Uint32Array): Uint8Array {
    const { first, sources } = this.#reversed(store.count);
    const isSettled = new Uint8Array(store.count);
    const newly: number[] = [];
    const state = new Uint8Array(model.size);
    for (let index = 0; index < store.count; index += 1) {
      store.copyTo(state, index);
      if (index >= expanded || model.isWaiting?.(state) !== true) {
        isSettled[index] = 1;
        newly.push(index);
      }
    }
    for (let index = newly.pop(); index !== undefined; index = newly.pop()) {
      for (let at = first[index] as number; at < (first[index + 1] as number); at += 1) {
        const source = sources[at] as number;
        edges[source] = (edges[source] as number) - 1;
        if (edges[source] === 0 && isSettled[source] === 0) {
          isSettled[source] = 1;
          newly.push(source);
        }
      }
    }
    return isSettled;
  }

  #edgesFrom(expanded: number): Uint32Array {
    const edges = new Uint32Array(expanded);
    for (let edge = 0; edge < this.#from.length; edge += 1) {
      const from = this.#from.at(edge);
      edges[from] = (edges[from] as number) + 1;
    }
    return edges;
  }

  /** For each target the start of its sources in the list. */
  #reversed(count: number): { first: Uint32Array; sources: Uint32Array } {
    const first = new Uint32Array(count + 1);
    for (let edge = 0; edge < this.#to.length; edge += 1) {
      const to = this.#to.at(edge) + 1;
      first[to] = (first[to] as number) + 1;
    }
    for (let index = 0; index < count; index += 1) {
      first[index + 1] = (first[index + 1] as number) + (first[index] as number);
    }
    const next = first.slice();
    const sources = new Uint32Array(this.#to.length);
    for (let edge = 0; edge < this.#to.length; edge += 1) {
      const to = this.#to.at(edge);
      sources[next[to] as number] = this.#from.at(edge);
      next[to] = (next[to] as number) + 1;
    }
    return { first, sources };
  }

  /** Follows stuck states from one stuck state to the next. */
  #findCycle(index: number, isSettled: Uint8Array): StuckState {
    const continuation: number[] = [];
    const seen = new Set([index]);
    for (let at = index; ;) {
      const next = this.#stuckAfter(at, isSettled);
      if (next === undefined) {
        const invariant = "progress: an attempt waits, and no step is possible";
        return { index, continuation, invariant };
      }
      continuation.push(next);
      if (seen.has(next)) {
        const invariant = "progress: an attempt waits in an endless cycle";
        return { index, continuation, invariant };
      }
      seen.add(next);
      at = next;
    }
  }

  #stuckAfter(index: number, isSettled: Uint8Array): number | undefined {
    for (let edge = 0; edge < this.#from.length; edge += 1) {
      if (this.#from.at(edge) === index && isSettled[this.#to.at(edge)] === 0) {
        return this.#to.at(edge);
      }
    }
    return undefined;
  }
}

/** A list of numbers that grows without being copied. */
class NumberList {
  length = 0;
  readonly #chunks: Uint32Array[] = [];

  get memory(): number {
    return this.#chunks.length * (4 << 16);
  }

  add(item: number): void {
    const slot = this.length & 0xffff;
    if (slot === 0) {
      this.#chunks.push(new Uint32Array(1 << 16));
    }
    (this.#chunks[this.length >>> 16] as Uint32Array)[slot] = item;
    this.length += 1;
  }

  at(index: number): number {
    return (this.#chunks[index >>> 16] as Uint32Array)[index & 0xffff] as number;
  }
}
