/** One thing that may happen, in a form that costs nothing while millions of them are tried. `tell` puts it into words. */
export interface Step {
  readonly rule: string;
  /** Whose it is, from 0; -1: nobody's. */
  readonly attempt: number;
  /** Where, from 0; -1: nowhere. */
  readonly node: number;
  /** What the rule says: a fencing number mostly. */
  readonly detail: number;
}

/**
 * Hears of a state that can follow.
 * @param next is used again for the next one: who wants to keep it copies it
 * @param isCalm it happens also when all faults are over, and nobody new comes: what progress may rely on
 */
export type VisitStep = (
  next: Uint8Array,
  rule: string,
  attempt: number,
  node: number,
  detail: number,
  isFaultFree: boolean,
) => void;

/** Parts of a state that are interchangeable: the nodes of a quorum. They stand side by side in its bytes. */
export interface Columns {
  readonly from: number;
  readonly width: number;
  readonly count: number;
}

/** A protocol as states and what may follow each of them. A state is a row of bytes. */
export interface Model {
  readonly size: number;
  readonly columns: Columns;
  initial(): Uint8Array;
  /** Tells every state that can follow. */
  expand(source: Uint8Array, visitStep: VisitStep): void;
  /** Which promise is broken in this state; undefined: none. */
  violation(state: Uint8Array): string | undefined;
  /** Whether somebody waits who has to be served; undefined: the model says nothing of progress. */
  readonly isWaiting?: ((state: Uint8Array) => boolean) | undefined;
  /** The step in the words of the design. */
  describeStep(step: Step): string;
  /** The state in one line. */
  describe(state: Uint8Array): string;
}
