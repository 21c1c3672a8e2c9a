import type { RedisClient } from "../drivers/redis/clients/detect.ts";
import type { Locks } from "../locks.ts";

interface Shared {
  readonly clients: readonly RedisClient[];
  readonly locks: Locks;
}

/** One `Locks` for each list of clients, because programs create a lock object for each call, and each driver has connections of its own. */
export class SharedLocks<Client extends RedisClient = RedisClient> {
  readonly #create: (clients: readonly Client[]) => Locks;
  /** By the first client. */
  readonly #known = new WeakMap<Client, readonly Shared[]>();

  constructor(create: (clients: readonly Client[]) => Locks) {
    this.#create = create;
  }

  /** The `Locks` of a list of clients, in this order. */
  of(clients: readonly Client[]): Locks {
    const known = this.#knownOf(clients).find((shared) => isSameList(shared.clients, clients));
    if (known) {
      return known.locks;
    }
    const locks = this.#create(clients);
    this.#remember(clients, [...this.#knownOf(clients), { clients: [...clients], locks }]);
    return locks;
  }

  /** Closes the `Locks` of a list of clients. A later call of {@link of} creates another one. */
  async close(clients: readonly Client[]): Promise<void> {
    const known = this.#knownOf(clients);
    const closing = known.filter((shared) => isSameList(shared.clients, clients));
    this.#remember(
      clients,
      known.filter((shared) => !closing.includes(shared)),
    );
    await Promise.all(closing.map(({ locks }) => locks.close()));
  }

  #knownOf([first]: readonly Client[]): readonly Shared[] {
    return (first && this.#known.get(first)) ?? [];
  }

  #remember([first]: readonly Client[], shared: readonly Shared[]): void {
    if (first) {
      this.#known.set(first, shared);
    }
  }
}

function isSameList(known: readonly RedisClient[], clients: readonly RedisClient[]): boolean {
  return known.length === clients.length && known.every((client, index) => client === clients[index]);
}
