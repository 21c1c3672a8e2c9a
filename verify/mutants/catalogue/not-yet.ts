/** A sentence of the design that no mutant can break, as there is no code for it yet. */
export interface NotYet {
  readonly breaks: string;
  readonly isMarked?: true;
  readonly waitsFor: string;
}

export const notYet: readonly NotYet[] = [
  {
    breaks:
      "a grant written by another's release would be waited for vacuously: acquire again, then WAIT (9)",
    isMarked: true,
    waitsFor: "minReplicas",
  },
];
