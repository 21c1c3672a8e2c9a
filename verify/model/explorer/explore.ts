import type { Model, VisitStep } from "./model.ts";
import { FaultFreeSteps } from "./progress.ts";
import { scheduleTo, type Schedule } from "./schedule.ts";
import { StateStore } from "./state-store.ts";
import { Symmetry } from "./symmetry.ts";

export interface Limits {
  /** The largest number of stored states. */
  readonly states: number;
  /** The largest number of consecutive steps. */
  readonly depth: number;
}

export interface Exploration {
  /** The number of states. States that differ only in the order of the nodes count once. */
  readonly states: number;
  readonly transitions: number;
  /** The largest number of steps that a shortest path to a state has. */
  readonly depth: number;
  /** Whether all reachable states were visited, with all their successors. */
  readonly isExhaustive: boolean;
  readonly seconds: number;
  /** The memory of the states, in bytes. */
  readonly memory: number;
  readonly violation: Violation | undefined;
}

export interface Violation {
  /** The violated invariant. */
  readonly invariant: string;
  /** A shortest schedule that leads to the violation. */
  readonly schedule: Schedule;
}

export interface Progress {
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
}

/**
 * Visits all states that a model can reach, breadth first, so that a violation is found by the fewest steps. If the model reports waiters,
 * then checks that every waiter is served once faults have ended.
 */
export function explore(
  model: Model,
  limits: Limits,
  reportProgress: (progress: Progress) => void = () => undefined,
): Exploration {
  const begun = performance.now();
  const seconds = (): number => (performance.now() - begun) / 1000;
  const search = new Search(model);
  while (search.canGoOn(limits)) {
    search.expandNext();
    if ((search.expanded & 0x3ffff) === 0) {
      reportProgress({ states: search.states, depth: search.depth, seconds: seconds() });
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
  /** The number of states whose successors were visited. */
  expanded = 0;
  depth = 0;
  transitions = 0;
  readonly #model: Model;
  readonly #store: StateStore;
  readonly #symmetry: Symmetry;
  readonly #faultFreeSteps: FaultFreeSteps | undefined;
  readonly #source: Uint8Array;
  readonly #canonical: Uint8Array;
  #endOfLayer = 1;
  #violatedState: { readonly invariant: string; readonly index: number } | undefined;
  readonly #visit: VisitStep = (next, _rule, _attempt, _node, _detail, isCalm) => {
    this.transitions += 1;
    const index = this.#addState(next, this.expanded);
    if (isCalm) {
      this.#faultFreeSteps?.add(this.expanded, index);
    }
  };

  constructor(model: Model) {
    this.#model = model;
    this.#store = new StateStore(model.size);
    this.#symmetry = new Symmetry(model.columns);
    this.#faultFreeSteps = model.isWaiting && new FaultFreeSteps();
    this.#source = new Uint8Array(model.size);
    this.#canonical = new Uint8Array(model.size);
    this.#addState(model.initial(), undefined);
  }

  get states(): number {
    return this.#store.count;
  }

  get memory(): number {
    return this.#store.memory + (this.#faultFreeSteps?.memory ?? 0);
  }

  canGoOn(limits: Limits): boolean {
    const isOpen = this.expanded < this.states && !this.#violatedState;
    return isOpen && this.states < limits.states && this.depth < limits.depth;
  }

  expandNext(): void {
    this.#store.copyTo(this.#source, this.expanded);
    this.#model.expand(this.#source, this.#visit);
    this.expanded += 1;
    if (this.expanded === this.#endOfLayer && this.expanded < this.states) {
      this.depth += 1;
      this.#endOfLayer = this.states;
    }
  }

  violation(): Violation | undefined {
    if (this.#violatedState) {
      const { invariant, index } = this.#violatedState;
      return { invariant, schedule: scheduleTo(this.#model, this.#store, index) };
    }
    const stuck = this.#faultFreeSteps?.firstStuck(this.#model, this.#store, this.expanded);
    if (!stuck) {
      return undefined;
    }
    const { invariant, index, continuation } = stuck;
    return { invariant, schedule: scheduleTo(this.#model, this.#store, index, continuation) };
  }

  #addState(state: Uint8Array, parent: number | undefined): number {
    this.#canonical.set(state);
    this.#symmetry.merge(this.#canonical);
    const sizeBefore = this.states;
    const index = this.#store.add(this.#canonical, parent);
    if (this.states > sizeBefore && !this.#violatedState) {
      const invariant = this.#model.violation(this.#canonical);
      this.#violatedState = invariant === undefined ? undefined : { invariant, index };
    }
    return index;
  }
}
