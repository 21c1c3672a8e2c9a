/** Who has which slot, as one node said it, corrected by redirections since. */
export class SlotMap {
  /** Who said it. */
  readonly source: string | undefined;
  readonly #owners: (string | undefined)[] = [];
  readonly #replicas = new Map<string, readonly string[]>();

  constructor(source?: string) {
    this.source = source;
  }

  /** @param answer of CLUSTER SLOTS @param source the node that said it: it may leave its own host out */
  static read(answer: unknown, source: string): SlotMap {
    const map = new SlotMap(source);
    for (const [from, to, primary, ...replicas] of answer as [number, number, ...NodeFields[]][]) {
      if (primary) {
        const owner = addressOf(primary, source);
        for (let slot = Number(from); slot <= Number(to); slot++) {
          map.#owners[slot] = owner;
        }
        map.#replicas.set(
          owner,
          replicas.map((replica) => addressOf(replica, source)),
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

type NodeFields = readonly [host: unknown, port: unknown, ...more: unknown[]];

function addressOf([host, port]: NodeFields, source: string): string {
  return withMissingNodes(`${host === null ? "" : String(host as string)}:${Number(port)}`, source);
}

/** A node that does not know its own host, or how it is reached, leaves it out: it is the host by which we reached it. */
export function withMissingNodes(address: string, source: string): string {
  const isWhole = !address.startsWith(":") && !address.startsWith("?:");
  return isWhole
    ? address
    : source.slice(0, source.lastIndexOf(":")) + address.slice(address.lastIndexOf(":"));
}
