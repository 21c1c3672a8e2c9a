import type { Model, Step } from "../model/explorer/model.ts";

type Matches = (step: Step) => boolean;

/** Steps that nobody sees and that have to come in between: more than a protocol needs. */
const mostStates = 2_000;

/** The states in which a model may be after what was seen so far. All steps are those of the model itself. */
export class Frontier {
  /** Its bounds may be others than before, its states not. */
  model: Model;
  #states: readonly Uint8Array[];

  constructor(model: Model) {
    this.model = model;
    this.#states = [model.initial()];
  }

  get states(): readonly Uint8Array[] {
    return this.#states;
  }

  /** Only those states in which that holds. Returns whether there are any. */
  filter(holds: (state: Uint8Array) => boolean): boolean {
    return this.#setStates(this.#states.filter(holds));
  }

  /** A step that may have been seen, or stand for one that was seen before: the states without it stay in question. */
  mayStep(...step: Parameters<Frontier["step"]>): void {
    const unobserved = this.#states;
    if (this.step(...step)) {
      this.#setStates(unique([...unobserved, ...this.#states]));
    }
  }

  /** The same states in another form. */
  rewrite(change: (state: Uint8Array) => Uint8Array): void {
    this.#states = unique(this.#states.map(change));
  }

  /**
   * Takes a step that was seen, behind as few unseen ones as can be.
   * @param accepts what the state behind it must be like
   * @returns false: the model has no such step here; then nothing has changed
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
      if (known.size > mostStates) {
        throw new RangeError("More states come into question than are looked at");
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
