/** The times at which each server, client or link has a fault. Two faults of one target at once would end each other. */
export class FaultSchedule {
  readonly #reserved = new Map<string, { readonly from: number; readonly to: number }[]>();

  /** Reserves all names for an interval, or none of them. */
  reserve(names: readonly string[], from: number, to: number): boolean {
    const isFree = names.every((name) =>
      (this.#reserved.get(name) ?? []).every((other) => other.to <= from || other.from >= to),
    );
    if (isFree) {
      for (const name of names) {
        this.#reserved.set(name, [...(this.#reserved.get(name) ?? []), { from, to }]);
      }
    }
    return isFree;
  }
}
