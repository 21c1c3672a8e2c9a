/** After the end of a fault its effects take so long, ms: a message that was under way, a connection, a look at both clocks. */
const effectsMs = 2_000;

/** Until when faults disturb which client. */
export class Disturbances {
  readonly #ends = new Map<number, number>();

  /** A fault of a client begins now. */
  begin(client: number, end: number): void {
    this.#ends.set(client, Math.max(this.#ends.get(client) ?? -Infinity, end));
  }

  /** Whether no fault has had an effect on it since then. */
  isQuietSince(client: number, since: number): boolean {
    return (this.#ends.get(client) ?? -Infinity) + effectsMs < since;
  }
}
