/** When the last effect of a fault on each client ends. */
export class ClientFaults {
  readonly #ends = new Map<number, number>();

  /** A fault begins now. @param end when the last effect of the fault ends */
  begin(client: number, end: number): void {
    this.#ends.set(client, Math.max(this.#ends.get(client) ?? -Infinity, end));
  }

  /** Whether no fault has had an effect on the client since then. */
  isQuietSince(client: number, since: number): boolean {
    return (this.#ends.get(client) ?? -Infinity) < since;
  }
}
