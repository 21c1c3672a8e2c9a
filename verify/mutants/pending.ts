/** A rule of the design that no mutant can break yet, because its code does not exist. */
export interface PendingMutant {
  readonly brokenRule: string;
  readonly hasCounterexample?: true;
  readonly waitsFor: string;
}

export const pendingMutants: readonly PendingMutant[] = [];
