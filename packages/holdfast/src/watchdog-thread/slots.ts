import { blockBytes, LeaseSlot, slotsOfBlock } from "./lease-slot.ts";

const mostLeases = 2 ** 21 - 1;

/** A slot in use, and its place in the shared memory. */
export interface PlacedSlot {
  readonly block: number;
  readonly index: number;
  readonly lease: number;
  readonly slot: LeaseSlot;
}

/** Shared memory for the leases of a process. It grows in blocks, and its slots are used again. */
export class Slots {
  readonly #blocks: BigInt64Array[] = [];
  readonly #free: { readonly block: number; readonly index: number; leases: number }[] = [];
  readonly #added: (block: SharedArrayBuffer) => void;

  /** @param added called with each new block, before a slot of it is used */
  constructor(added: (block: SharedArrayBuffer) => void) {
    this.#added = added;
  }

  get buffers(): readonly SharedArrayBuffer[] {
    return this.#blocks.map(({ buffer }) => buffer as SharedArrayBuffer);
  }

  take(): PlacedSlot & { readonly free: () => void } {
    const place = this.#free.pop() ?? this.#grow();
    place.leases = (place.leases % mostLeases) + 1;
    const { block, index, leases: lease } = place;
    const slot = new LeaseSlot(this.#blocks[block] as BigInt64Array, index, lease);
    return { block, index, lease, slot, free: () => this.#free.push(place) };
  }

  #grow(): { readonly block: number; readonly index: number; leases: number } {
    const buffer = new SharedArrayBuffer(blockBytes);
    const block = this.#blocks.push(new BigInt64Array(buffer)) - 1;
    this.#added(buffer);
    for (let index = slotsOfBlock - 1; index > 0; index -= 1) {
      this.#free.push({ block, index, leases: 0 });
    }
    return { block, index: 0, leases: 0 };
  }
}
