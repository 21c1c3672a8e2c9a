/** Who has which slot, as one node said it, corrected by redirections since. */
export class SlotMap {
  /** Who said it. */
  readonly teller: string | undefined;
  readonly #owners: (string | undefined)[] = [];
  readonly #replicas = new Map<string, readonly string[]>();

  constructor(teller?: string) {
    this.teller = teller;
  }

  /** @param answer of CLUSTER SLOTS @param teller the node that said it: it may leave its own host out */
  static read(answer: unknown, teller: string): SlotMap {
    const map = new SlotMap(teller);
    for (const [from, to, primary, ...replicas] of answer as [number, number, ...NodeWords[]][]) {
      if (primary) {
        const owner = addressOf(primary, teller);
        for (let slot = Number(from); slot <= Number(to); slot++) {
          map.#owners[slot] = owner;
        }
        map.#replicas.set(
          owner,
          replicas.map((replica) => addressOf(replica, teller)),
        );
      }
    }
    return map;
  }

  get isEmpty(): boolean {
    return this.#replicas.size === 0;
  }

  ownerOf(slot: number): string | undefined {
    return this.#owners[slot];
  }

  move(slot: number, address: string): void {
    this.#owners[slot] = address;
    if (!this.#replicas.has(address)) {
      this.#replicas.set(address, []);
    }
  }

  /** Sorted, so that a cursor can name one. */
  primaries(): readonly string[] {
    return Array.from(this.#replicas.keys()).sort();
  }

  replicasOf(primary: string): readonly string[] {
    return this.#replicas.get(primary) ?? [];
  }

  countOf(primary: string): number {
    return this.#owners.filter((owner) => owner === primary).length;
  }
}

type NodeWords = readonly [host: unknown, port: unknown, ...more: unknown[]];

function addressOf([host, port]: NodeWords, teller: string): string {
  return completed(`${host === null ? "" : String(host as string)}:${Number(port)}`, teller);
}

/** A node that does not know its own host, or how it is reached, leaves it out: it is the host by which we reached it. */
export function completed(address: string, teller: string): string {
  const isWhole = !address.startsWith(":") && !address.startsWith("?:");
  return isWhole
    ? address
    : teller.slice(0, teller.lastIndexOf(":")) + address.slice(address.lastIndexOf(":"));
}
