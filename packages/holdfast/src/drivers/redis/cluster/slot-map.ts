/** The nodes of all slots, as one node reported them, with the changes from later redirections. */
export class SlotMap {
  /** The address of the node that reported the map. */
  readonly source: string | undefined;
  readonly #owners: (string | undefined)[] = [];
  readonly #replicas = new Map<string, readonly string[]>();

  constructor(source?: string) {
    this.source = source;
  }

  /**
   * @param answer the reply to `CLUSTER SLOTS`
   * @param source the address of the node that replied, because a node may omit its own host
   */
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

  /** Sorted, because a cursor names a primary by its address. */
  primaries(): readonly string[] {
    return Array.from(this.#replicas.keys()).sort();
  }

  replicasOf(primary: string): readonly string[] {
    return this.#replicas.get(primary) ?? [];
  }

  countOf(primary: string): number {
    return this.slotsOf(primary).length;
  }

  slotsOf(primary: string): number[] {
    return Array.from(this.#owners.keys()).filter((slot) => this.#owners[slot] === primary);
  }
}

type NodeFields = readonly [host: unknown, port: unknown, ...more: unknown[]];

function addressOf([host, port]: NodeFields, source: string): string {
  return withMissingHost(`${host === null ? "" : String(host as string)}:${Number(port)}`, source);
}

/** Completes an address without a host. A node omits its own host if it does not know the host, so the host of `source` applies. */
export function withMissingHost(address: string, source: string): string {
  const isWhole = !address.startsWith(":") && !address.startsWith("?:");
  return isWhole
    ? address
    : source.slice(0, source.lastIndexOf(":")) + address.slice(address.lastIndexOf(":"));
}
