/** A sentence of the design that no mutant can break, as there is no code for it yet. */
export interface NotYet {
  readonly breaks: string;
  readonly isMarked?: true;
  readonly waitsFor: string;
}

export const notYet: readonly NotYet[] = [];
