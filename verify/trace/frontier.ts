import type { Model, Step } from "../model/explorer/model.ts";

type Matches = (step: Step) => boolean;

/** The most states that a search for unobserved steps may visit. A protocol needs fewer states. */
const maxStates = 2_000;

/** The states in which a model may be after the observed events. All steps are steps of the model itself. */
export class Frontier {
  /** The model may be replaced by a model with other bounds and the same states. */
  model: Model;
  #states: readonly Uint8Array[];

  constructor(model: Model) {
    this.model = model;
    this.#states = [model.initial()];
  }

  get states(): readonly Uint8Array[] {
    return this.#states;
  }

  /** Keeps the states in which the condition holds. @returns false: no state holds, and nothing has changed */
  filter(holds: (state: Uint8Array) => boolean): boolean {
    return this.#setStates(this.#states.filter(holds));
  }

  /** Takes a step that may already have been observed. The states without this step stay possible. */
  mayStep(...step: Parameters<Frontier["step"]>): void {
    const unobserved = this.#states;
    if (this.step(...step)) {
      this.#setStates(unique([...unobserved, ...this.#states]));
    }
  }

  /** Rewrites every state in another form. */
  rewrite(change: (state: Uint8Array) => Uint8Array): void {
    this.#states = unique(this.#states.map(change));
  }

  /**
   * Takes an observed step, after as few unobserved steps as possible.
   * @param accepts tests the state after the step
   * @returns false: the model has no such step here, and nothing has changed
   */
  step(matches: Matches, unobserved: Matches, accepts: (state: Uint8Array) => boolean = () => true): boolean {
    const known = new Set(this.#states.map(keyOf));
    for (let layer = this.#states; layer.length > 0;) {
      const found: Uint8Array[] = [];
      const next: Uint8Array[] = [];
      for (const state of layer) {
        this.model.expand(state, (after, rule, attempt, node, detail) => {
          const step = { rule, attempt, node, detail };
          if (this.model.violation(after) !== undefined) {
            return;
          }
          if (matches(step) && accepts(after)) {
            found.push(after.slice());
          } else if (unobserved(step) && !known.has(keyOf(after))) {
            known.add(keyOf(after));
            next.push(after.slice());
          }
        });
      }
      if (this.#setStates(unique(found))) {
        return true;
      }
      if (known.size > maxStates) {
        throw new RangeError(`More than ${maxStates} states are possible`);
      }
      layer = next;
    }
    return false;
  }

  #setStates(states: readonly Uint8Array[]): boolean {
    this.#states = states.length > 0 ? states : this.#states;
    return states.length > 0;
  }
}

function unique(states: readonly Uint8Array[]): Uint8Array[] {
  return [...new Map(states.map((state) => [keyOf(state), state])).values()];
}

function keyOf(state: Uint8Array): string {
  return Buffer.from(state.buffer, state.byteOffset, state.length).toString("latin1");
}
