import type { ListQuery } from "../../../driver.ts";
import { exists, type FenceState, type LockState } from "../../../lock-state.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { KeySpace } from "../protocol/keys.ts";
import { compareFence, parseSnapshot, toLockState, type LockSnapshot } from "../server/lock-snapshot.ts";
import { requestOnce } from "../server/perform-once.ts";
import { pageBudgetMs, type ServerDirectory } from "./server-directory.ts";

interface InspectorDeps {
  readonly servers: ServerDirectory;
  readonly keySpace: KeySpace;
  readonly clock: Clock;
}

/** Reads the state of locks, and changes nothing. */
export class LockInspector {
  readonly #servers: ServerDirectory;
  readonly #keySpace: KeySpace;
  readonly #clock: Clock;

  constructor({ servers, keySpace, clock }: InspectorDeps) {
    this.#servers = servers;
    this.#keySpace = keySpace;
    this.#clock = clock;
  }

  async inspect(key: string): Promise<LockState> {
    const server = this.#servers.serverFor(this.#keySpace.keysOf(key));
    return toLockState(server, key, await this.#snapshot(key));
  }

  async list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const locks: LockState[] = [];
    const end = this.#clock.now() + pageBudgetMs;
    let { cursor } = query;
    do {
      query.signal?.throwIfAborted();
      const page = await this.#servers.scan(cursor, this.#keySpace.patternOf(query.prefix), query.limit);
      const keys = page.locks.map((lock) => this.#keySpace.keyOf(lock)).filter((key) => key !== undefined);
      const states = await Promise.all(keys.map((key) => this.inspect(key)));
      locks.push(...states.filter(exists));
      ({ cursor } = page);
    } while (cursor !== null && locks.length < query.limit && this.#clock.now() < end);
    return { locks, cursor };
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return compareFence(await this.#snapshot(key), fencingToken);
  }

  async #snapshot(key: string): Promise<LockSnapshot> {
    const keys = this.#keySpace.keysOf(key);
    const reply = await requestOnce(this.#servers.serverFor(keys), { key, keys, args: ["inspect"] });
    return parseSnapshot(reply.value);
  }
}
