const chunkBits = 16;
const chunkStates = 1 << chunkBits;
const noParent = 0xffffffff;

/**
 * All visited states in the order of their discovery, each with its predecessor. States are compared byte for byte, so no hash stands for a
 * state.
 */
export class StateStore {
  readonly #wordsPerState: number;
  readonly #chunks: Uint32Array[] = [];
  readonly #parents: Uint32Array[] = [];
  /** A hash table with open addressing: the index of a state + 1, and 0 for a free place. */
  #table: Uint32Array = new Uint32Array(1 << 16);
  #count = 0;
  readonly #scratch: Uint32Array;
  readonly #scratchBytes: Uint8Array;

  /** @param size the bytes of a state */
  constructor(size: number) {
    this.#wordsPerState = Math.ceil(size / 4);
    this.#scratch = new Uint32Array(this.#wordsPerState);
    this.#scratchBytes = new Uint8Array(this.#scratch.buffer, 0, size);
  }

  get count(): number {
    return this.#count;
  }

  /** The memory of the states, in bytes. */
  get memory(): number {
    return this.#chunks.length * chunkStates * (this.#wordsPerState + 1) * 4 + this.#table.length * 4;
  }

  /** The index of a state. The state is new if `count` has grown. */
  add(state: Uint8Array, parent: number = noParent): number {
    this.#scratchBytes.set(state);
    if (this.#count * 2 >= this.#table.length) {
      this.#grow();
    }
    const mask = this.#table.length - 1;
    let slot = hashOf(this.#scratch) & mask;
    for (let entry = this.#table[slot] as number; entry !== 0; entry = this.#table[slot] as number) {
      if (this.#isAt(entry - 1)) {
        return entry - 1;
      }
      slot = (slot + 1) & mask;
    }
    return this.#append(slot, parent);
  }

  copyTo(target: Uint8Array, index: number): void {
    const chunk = this.#chunks[index >>> chunkBits] as Uint32Array;
    const from = (index & (chunkStates - 1)) * this.#wordsPerState * 4;
    target.set(new Uint8Array(chunk.buffer, from, target.length));
  }

  /** The predecessor of a state. The first state has none. */
  parentOf(index: number): number | undefined {
    const parent = this.#parents[index >>> chunkBits]?.[index & (chunkStates - 1)] ?? noParent;
    return parent === noParent ? undefined : parent;
  }

  #append(slot: number, parent: number): number {
    const index = this.#count;
    const position = index & (chunkStates - 1);
    if (position === 0) {
      this.#chunks.push(new Uint32Array(chunkStates * this.#wordsPerState));
      this.#parents.push(new Uint32Array(chunkStates));
    }
    (this.#chunks[index >>> chunkBits] as Uint32Array).set(this.#scratch, position * this.#wordsPerState);
    (this.#parents[index >>> chunkBits] as Uint32Array)[position] = parent;
    this.#table[slot] = index + 1;
    this.#count += 1;
    return index;
  }

  #isAt(index: number): boolean {
    const chunk = this.#chunks[index >>> chunkBits] as Uint32Array;
    const from = (index & (chunkStates - 1)) * this.#wordsPerState;
    for (let word = 0; word < this.#wordsPerState; word += 1) {
      if (chunk[from + word] !== this.#scratch[word]) {
        return false;
      }
    }
    return true;
  }

  #grow(): void {
    const table = new Uint32Array(this.#table.length * 2);
    const mask = table.length - 1;
    const wordCount = this.#wordsPerState;
    for (let index = 0; index < this.#count; index += 1) {
      const from = (index & (chunkStates - 1)) * wordCount;
      const state = (this.#chunks[index >>> chunkBits] as Uint32Array).subarray(from, from + wordCount);
      let slot = hashOf(state) & mask;
      while (table[slot] !== 0) {
        slot = (slot + 1) & mask;
      }
      table[slot] = index + 1;
    }
    this.#table = table;
  }
}

function hashOf(stateWords: Uint32Array): number {
  let hash = 0x9e3779b1;
  for (let index = 0; index < stateWords.length; index += 1) {
    hash ^= stateWords[index] as number;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  }
  return (hash ^ (hash >>> 16)) >>> 0;
}
