import type { Clock } from "../../clock.ts";
import type { Leftover, Releaser } from "./releaser.ts";

/** So many are remembered. */
const mostGrants = 10_000;

/** The last release of a token. */
interface End {
  /** When it was answered, or will be over at the latest, on the scale of `clock.now()`. */
  at: number;
  readonly released: Promise<boolean>;
}

/**
 * What attempts were granted that their callers have named, and may repeat. An answer to what was asked before a release of its token
 * was answered may tell of what that has ended: it tells of no grant.
 */
export class NamedGrants {
  readonly #clock: Clock;
  readonly #releaser: Releaser;
  /** By token; undefined: it was not released. */
  readonly #ends = new Map<string, End | undefined>();

  constructor(clock: Clock, releaser: Releaser) {
    this.#clock = clock;
    this.#releaser = releaser;
  }

  granted(token: string): void {
    if (!this.#ends.has(token)) {
      this.#ends.set(token, undefined);
      if (this.#ends.size > mostGrants) {
        this.#ends.delete(this.#ends.keys().next().value as string);
      }
    }
  }

  has(token: string): boolean {
    return this.#ends.has(token);
  }

  /** As the releaser's own. */
  release(leftover: Leftover): Promise<boolean> {
    const { token, until } = leftover;
    const released = new Promise<boolean>((resolve, reject) => {
      const answered = (wasReleased: boolean): void => {
        end.at = this.#clock.now();
        resolve(wasReleased);
      };
      this.#releaser.begin(leftover, { released: answered, failed: reject });
    });
    const end: End = { at: until, released };
    this.#ends.set(token, end);
    return released;
  }

  /**
   * The release that may have ended what an answer tells of.
   * @param asked when the server was asked
   */
  releaseSince(token: string, asked: number): Promise<boolean> | undefined {
    const end = this.#ends.get(token);
    return end && asked < end.at ? end.released : undefined;
  }
}
