/** Who is busy when: two faults of one server, client or way would end each other. */
export class FaultSchedule {
  readonly #reserved = new Map<string, { readonly from: number; readonly to: number }[]>();

  /** Takes all of them for that time, or none. */
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
