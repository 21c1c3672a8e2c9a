/** Who is busy when: two faults of one server, client or way would end each other. */
export class Reservations {
  readonly #taken = new Map<string, { readonly from: number; readonly to: number }[]>();

  /** Takes all of them for that time, or none. */
  take(names: readonly string[], from: number, to: number): boolean {
    const isFree = names.every((name) =>
      (this.#taken.get(name) ?? []).every((other) => other.to <= from || other.from >= to),
    );
    if (isFree) {
      for (const name of names) {
        this.#taken.set(name, [...(this.#taken.get(name) ?? []), { from, to }]);
      }
    }
    return isFree;
  }
}
