/** A possible step, in a form that costs no allocation, because millions of steps are tried. `describeStep` describes it. */
export interface Step {
  readonly rule: string;
  /** The attempt that makes the step, from 0; -1: none. */
  readonly attempt: number;
  /** The node of the step, from 0; -1: none. */
  readonly node: number;
  /** A parameter of the rule, usually a fencing number. */
  readonly detail: number;
}

/**
 * Receives a possible successor of a state.
 * @param next is reused for the next call, so a receiver that keeps the state copies it
 * @param isFaultFree whether the step also happens after all faults have ended, so that progress may rely on the step
 */
export type VisitStep = (
  next: Uint8Array,
  rule: string,
  attempt: number,
  node: number,
  detail: number,
  isFaultFree: boolean,
) => void;

/** The interchangeable parts of a state: the nodes of a quorum, which are adjacent in its bytes. */
export interface Columns {
  readonly from: number;
  readonly width: number;
  readonly count: number;
}

/** A protocol as states and the successors of each state. A state is a sequence of bytes. */
export interface Model {
  readonly size: number;
  readonly columns: Columns;
  initial(): Uint8Array;
  /** Reports every possible successor of a state. */
  expand(source: Uint8Array, visitStep: VisitStep): void;
  /** The invariant that the state violates; undefined: none. */
  violation(state: Uint8Array): string | undefined;
  /** Whether the state has a waiter that must be served. Without this function, progress is not checked. */
  readonly isWaiting?: ((state: Uint8Array) => boolean) | undefined;
  /** Describes a step in the terms of the protocol. */
  describeStep(step: Step): string;
  /** Describes a state in one line. */
  describe(state: Uint8Array): string;
}
