import { EngineError } from "../../../errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { pause, withTimeout } from "../../../runtime/timeout.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { messageOf } from "../server/errors.ts";
import { SlotMap } from "./slot-map.ts";

/** How long a redirected call or a search is repeated, as a fraction of `commandTimeoutMs`. The rest is for the reply. */
export const timeoutFactor = 0.5;
const maxPauseMs = 200;
/** The next node is requested to send its map if the node before has not answered within this time, ms. */
const hedgeMs = 200;

interface SlotMapLoaderOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  /** Sends a plain command to the node with this address. */
  readonly command: (address: string, name: string, args: readonly string[]) => Promise<unknown>;
}

/** Loads the map of slots from the nodes of the cluster. */
export class SlotMapLoader {
  readonly #options: SlotMapLoaderOptions;
  #isClosed = false;

  constructor(options: SlotMapLoaderOptions) {
    this.#options = options;
  }

  /**
   * Loads a new map.
   * @param present the map in use, which names the nodes to request the new map from
   * @param first the address of the node to request first, if any
   */
  async load(present: SlotMap, first: string | undefined): Promise<SlotMap> {
    const { clock, random, commandTimeoutMs } = this.#options;
    const deadline = clock.now() + commandTimeoutMs * timeoutFactor;
    let candidates = this.#candidates(present, first);
    for (let tries = 1; candidates.size === 0 && clock.now() < deadline; tries++) {
      await pauseAfter(clock, random, tries); // the client is still connecting
      candidates = this.#candidates(present, first);
    }
    return this.#requestMap(Array.from(candidates));
  }

  close(): void {
    this.#isClosed = true;
  }

  /** The nodes that may have the map, the best first. */
  #candidates(present: SlotMap, first: string | undefined): Set<string> {
    const { client, random } = this.#options;
    const primaries = shuffled(present.primaries(), random);
    const replicas = primaries.flatMap((primary) => present.replicasOf(primary));
    const preferred = first === undefined ? [] : [first];
    return new Set([...preferred, ...primaries, ...client.known(), ...replicas]);
  }

  /** Requests the map from one node after the other. A slow node delays the next request by {@link hedgeMs} only; its late reply counts. */
  async #requestMap(candidates: readonly string[]): Promise<SlotMap> {
    const { clock, commandTimeoutMs, command } = this.#options;
    let failure: unknown = new Error("the client is not connected");
    const requests: Promise<SlotMap | undefined>[] = [];
    for (const address of candidates) {
      if (this.#isClosed) {
        break; // the router is closed and would not end a new connection
      }
      const request = command(address, "CLUSTER", ["SLOTS"])
        .then((reply) => {
          const map = SlotMap.read(reply, address);
          return map.isEmpty ? undefined : map;
        })
        .catch((error: unknown) => {
          failure = error;
          return undefined;
        });
      requests.push(request);
      const map = await withTimeout(clock, hedgeMs, firstResult(requests));
      if (map) {
        return map;
      }
    }
    const late = await withTimeout(clock, commandTimeoutMs * timeoutFactor, firstResult(requests));
    if (late) {
      return late;
    }
    throw unavailable(`no node of the cluster sent its slots: ${messageOf(failure)}`);
  }
}

/** A pause after the given number of tries. */
export function pauseAfter(clock: Clock, random: Random, tries: number): Promise<void> {
  return pause(clock, backoffMs(random, tries - 1, maxPauseMs));
}

/** Nothing was sent, because no node is available for it. */
export function unavailable(message: string): EngineError {
  return new EngineError(`Redis Cluster: ${message}`, { outcome: "none", retryable: true });
}

/** The first result that is not undefined. Undefined if every result is. */
async function firstResult<T>(promises: readonly Promise<T | undefined>[]): Promise<T | undefined> {
  return new Promise((resolve) => {
    let remaining = promises.length;
    if (remaining === 0) {
      resolve(undefined);
    }
    for (const promise of promises) {
      void promise.then((value) => {
        remaining -= 1;
        if (value !== undefined || remaining === 0) {
          resolve(value);
        }
      });
    }
  });
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.nextFloat() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
