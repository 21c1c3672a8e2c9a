import type { Model, Step } from "./model.ts";
import type { StateStore } from "./state-store.ts";
import { Symmetry } from "./symmetry.ts";

interface ScheduledStep {
  /** The step, in the terms of the protocol. */
  readonly description: string;
  /** The state after the step. */
  readonly state: string;
}

export interface Schedule {
  readonly steps: readonly ScheduledStep[];
  /** The steps after the end of all faults, for a violation of progress. */
  readonly continuation: readonly ScheduledStep[];
}

/**
 * The steps from the first state to this one. The store has only states with sorted nodes. So this function searches each step among the
 * possible steps, with the nodes in their original order.
 */
export function scheduleTo(
  model: Model,
  store: StateStore,
  index: number,
  continuation: readonly number[] = [],
): Schedule {
  const path: number[] = [];
  for (let at: number | undefined = index; at !== undefined; at = store.parentOf(at)) {
    path.unshift(at);
  }
  const replay = new Replay(model, store);
  return {
    steps: path.slice(1).map((at) => replay.goTo(at, false)),
    continuation: continuation.map((at) => replay.goTo(at, true)),
  };
}

class Replay {
  readonly #model: Model;
  readonly #store: StateStore;
  readonly #symmetry: Symmetry;
  #state: Uint8Array;

  constructor(model: Model, store: StateStore) {
    this.#model = model;
    this.#store = store;
    this.#symmetry = new Symmetry(model.columns);
    this.#state = model.initial();
  }

  goTo(index: number, onlyFaultFree: boolean): ScheduledStep {
    const target = new Uint8Array(this.#model.size);
    this.#store.copyTo(target, index);
    let found: { step: Step; next: Uint8Array } | undefined;
    this.#model.expand(this.#state, (next, rule, attempt, node, detail, isCalm) => {
      if (!found && (isCalm || !onlyFaultFree) && this.#isSame(next, target)) {
        found = { step: { rule, attempt, node, detail }, next: next.slice() };
      }
    });
    if (!found) {
      throw new Error("A visited state cannot be reached again: the model does not treat its nodes equally");
    }
    this.#state = found.next;
    return { description: this.#model.describeStep(found.step), state: this.#model.describe(found.next) };
  }

  #isSame(next: Uint8Array, target: Uint8Array): boolean {
    const sorted = next.slice();
    this.#symmetry.merge(sorted);
    return sorted.every((byte, at) => byte === target[at]);
  }
}
