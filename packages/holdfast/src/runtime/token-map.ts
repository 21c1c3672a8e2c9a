/** The hash of a token uses this many of its last characters: the digits of the ticket, which differ most. */
const hashedDigits = 8;
const minSize = 16;

/**
 * A map from tokens to items. It is not a `Map`, for the same reason as `UnorderedSet` is no `Set`.
 * Open addressing with linear probing. A removal leaves no mark, because later entries move up (Knuth, The Art of Computer Programming 3,
 * 6.4, algorithm R).
 */
export class TokenMap<T> {
  #tokens: (string | undefined)[] = Array.from({ length: minSize });
  #items: (T | undefined)[] = Array.from({ length: minSize });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(token: string): T | undefined {
    return this.#items[this.#slotOf(token)];
  }

  /** All items, in no order. */
  items(): T[] {
    return this.#items.filter((item) => item !== undefined);
  }

  /** @returns the item that the token had before */
  set(token: string, item: T): T | undefined {
    let slot = this.#slotOf(token);
    const before = this.#items[slot];
    if (this.#tokens[slot] === undefined) {
      this.#size += 1;
      if (this.#size * 2 > this.#tokens.length) {
        this.#grow();
        slot = this.#slotOf(token);
      }
    }
    this.#tokens[slot] = token;
    this.#items[slot] = item;
    return before;
  }

  delete(token: string): void {
    let free = this.#slotOf(token);
    if (this.#tokens[free] === undefined) {
      return;
    }
    this.#size -= 1;
    const mask = this.#tokens.length - 1;
    for (let slot = (free + 1) & mask; ; slot = (slot + 1) & mask) {
      const other = this.#tokens[slot];
      if (other === undefined) {
        break;
      }
      const home = hashOf(other) & mask;
      if (((slot - home) & mask) >= ((slot - free) & mask)) {
        this.#tokens[free] = other;
        this.#items[free] = this.#items[slot];
        free = slot;
      }
    }
    this.#tokens[free] = undefined;
    this.#items[free] = undefined;
  }

  /** The slot of the token, or the free slot for it. */
  #slotOf(token: string): number {
    const tokens = this.#tokens;
    const mask = tokens.length - 1;
    let slot = hashOf(token) & mask;
    while (tokens[slot] !== undefined && tokens[slot] !== token) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [tokens, items] = [this.#tokens, this.#items];
    const length = tokens.length * 2;
    this.#tokens = Array.from({ length });
    this.#items = Array.from({ length });
    tokens.forEach((token, slot) => {
      if (token !== undefined) {
        const moved = this.#slotOf(token);
        this.#tokens[moved] = token;
        this.#items[moved] = items[slot];
      }
    });
  }
}

function hashOf(token: string): number {
  let hash = 0;
  for (let index = Math.max(0, token.length - hashedDigits); index < token.length; index += 1) {
    hash = (Math.imul(hash, 31) + token.charCodeAt(index)) | 0;
  }
  return hash ^ (hash >>> 15);
}
