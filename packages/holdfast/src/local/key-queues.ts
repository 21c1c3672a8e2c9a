import type { Share } from "../driver.ts";
import { Line, type Handed } from "./local-queue.ts";

/** So many lines of a semaphore are kept, also those that nobody stands in. */
const fewLines = 8;

/** All lines before one key. Callers that want the same of it stand in one: of a semaphore as many permits of the same limit. */
export class KeyLines<Hold extends Handed<Hold>> {
  readonly mutex: Line<Hold> = new Line<Hold>(1, 0);
  #semaphores: Map<string, Line<Hold>> | undefined;
  /** Callers that wait for the key past the lines, each by itself. */
  outside = 0;

  get isEmpty(): boolean {
    return this.outside === 0 && this.all.every((line) => line.isEmpty);
  }

  /** How many callers of this process wait for the key. */
  get length(): number {
    return this.all.reduce((sum, line) => sum + line.length, this.outside);
  }

  get all(): readonly Line<Hold>[] {
    return this.#semaphores ? [this.mutex, ...this.#semaphores.values()] : [this.mutex];
  }

  /** Of a semaphore the first that waits always stands in the queue of the engine, which therefore remembers the limit. */
  of(share: Share | undefined): Line<Hold> {
    if (share?.kind !== "semaphore") {
      return this.mutex;
    }
    const { permits, limit } = share;
    const name = `${permits}/${limit}`;
    let line = this.#semaphores?.get(name);
    if (!line) {
      line = new Line(Math.floor(limit / permits), 1);
      const used = [...(this.#semaphores ?? [])];
      const kept = used.length < fewLines ? used : used.filter(([, { isEmpty }]) => !isEmpty);
      this.#semaphores = new Map([...kept, [name, line]]);
    }
    return line;
  }
}
