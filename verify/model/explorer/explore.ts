import type { Model, Take } from "./model.ts";
import { CalmSteps } from "./progress.ts";
import { scheduleTo, type Schedule } from "./schedule.ts";
import { StateStore } from "./state-store.ts";
import { Symmetry } from "./symmetry.ts";

export interface Limits {
  /** No more states than this are kept. */
  readonly states: number;
  /** No more steps than this follow each other. */
  readonly depth: number;
}

export interface Exploration {
  /** States that differ in more than which node is which. */
  readonly states: number;
  readonly transitions: number;
  /** The most steps that the shortest way to a state takes. */
  readonly depth: number;
  /** Every state that can be reached was seen, and all that follows it. */
  readonly isExhaustive: boolean;
  readonly seconds: number;
  /** Of the states, in bytes. */
  readonly memory: number;
  readonly violation: Violation | undefined;
}

export interface Violation {
  /** Which promise, and by whom. */
  readonly promise: string;
  /** How it comes to that; no shorter schedule does. */
  readonly schedule: Schedule;
}

export interface Progress {
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
}

/**
 * Goes through all states that a model can reach, breadth first: what it finds broken is found by the fewest steps. Where the model
 * says who waits, it then asks whether everybody is served once faults are over.
 */
export function explore(
  model: Model,
  limits: Limits,
  tellProgress: (progress: Progress) => void = () => undefined,
): Exploration {
  const begun = performance.now();
  const seconds = (): number => (performance.now() - begun) / 1000;
  const search = new Search(model);
  while (search.canGoOn(limits)) {
    search.expandNext();
    if ((search.expanded & 0x3ffff) === 0) {
      tellProgress({ states: search.states, depth: search.depth, seconds: seconds() });
    }
  }
  const violation = search.violation();
  return {
    states: search.states,
    transitions: search.transitions,
    depth: search.depth,
    isExhaustive: search.expanded === search.states,
    seconds: seconds(),
    memory: search.memory,
    violation,
  };
}

class Search {
  /** How many states were looked behind. */
  expanded = 0;
  depth = 0;
  transitions = 0;
  readonly #model: Model;
  readonly #store: StateStore;
  readonly #symmetry: Symmetry;
  readonly #calm: CalmSteps | undefined;
  readonly #source: Uint8Array;
  readonly #canonical: Uint8Array;
  #endOfLayer = 1;
  #broken: { readonly promise: string; readonly index: number } | undefined;
  readonly #take: Take = (next, _rule, _attempt, _node, _detail, isCalm) => {
    this.transitions += 1;
    const index = this.#see(next, this.expanded);
    if (isCalm) {
      this.#calm?.add(this.expanded, index);
    }
  };

  constructor(model: Model) {
    this.#model = model;
    this.#store = new StateStore(model.size);
    this.#symmetry = new Symmetry(model.columns);
    this.#calm = model.isWaiting && new CalmSteps();
    this.#source = new Uint8Array(model.size);
    this.#canonical = new Uint8Array(model.size);
    this.#see(model.initial(), undefined);
  }

  get states(): number {
    return this.#store.count;
  }

  get memory(): number {
    return this.#store.memory + (this.#calm?.memory ?? 0);
  }

  canGoOn(limits: Limits): boolean {
    const isOpen = this.expanded < this.states && !this.#broken;
    return isOpen && this.states < limits.states && this.depth < limits.depth;
  }

  expandNext(): void {
    this.#store.copyTo(this.#source, this.expanded);
    this.#model.expand(this.#source, this.#take);
    this.expanded += 1;
    if (this.expanded === this.#endOfLayer && this.expanded < this.states) {
      this.depth += 1;
      this.#endOfLayer = this.states;
    }
  }

  violation(): Violation | undefined {
    if (this.#broken) {
      const { promise, index } = this.#broken;
      return { promise, schedule: scheduleTo(this.#model, this.#store, index) };
    }
    const stuck = this.#calm?.firstStuck(this.#model, this.#store, this.expanded);
    if (!stuck) {
      return undefined;
    }
    const { promise, index, goesOn } = stuck;
    return { promise, schedule: scheduleTo(this.#model, this.#store, index, goesOn) };
  }

  #see(state: Uint8Array, parent: number | undefined): number {
    this.#canonical.set(state);
    this.#symmetry.merge(this.#canonical);
    const before = this.states;
    const index = this.#store.add(this.#canonical, parent);
    if (this.states > before && !this.#broken) {
      const promise = this.#model.violation(this.#canonical);
      this.#broken = promise === undefined ? undefined : { promise, index };
    }
    return index;
  }
}
