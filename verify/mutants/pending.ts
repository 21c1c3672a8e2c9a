/** A sentence of the design that no mutant can break, as there is no code for it yet. */
export interface PendingMutant {
  readonly brokenRule: string;
  readonly hasCounterexample?: true;
  readonly waitsFor: string;
}

export const pendingMutants: readonly PendingMutant[] = [];
