/** Until when faults disturb which client. */
export class ClientFaults {
  readonly #ends = new Map<number, number>();

  /** A fault begins now. @param end of its last effect */
  begin(client: number, end: number): void {
    this.#ends.set(client, Math.max(this.#ends.get(client) ?? -Infinity, end));
  }

  /** Whether no fault has had an effect on it since then. */
  isQuietSince(client: number, since: number): boolean {
    return (this.#ends.get(client) ?? -Infinity) < since;
  }
}
