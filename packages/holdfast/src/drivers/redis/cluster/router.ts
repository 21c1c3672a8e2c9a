import type { Clock } from "../../../runtime/clock.ts";
import { EngineError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { pause, within } from "../../../runtime/timeout.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import type { Script } from "../protocol/script.ts";
import { ServerTime, Tickets } from "../server/server-clock.ts";
import { Ears } from "./subscriptions.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { Shard } from "./cluster-node.ts";
import { completed, SlotMap } from "./slot-map.ts";

/** How long a redirected call goes on, as part of what a command may take: the rest is for the answer. */
const patience = 0.5;
const mostRedirections = 5;
const longestPauseMs = 200;
/** The next node is asked for the map when the one before has not answered for so long, ms. */
const hedgeMs = 200;
const closingGrainMs = 5;

/** The server refused and did nothing: another node, or the same one a moment later, will not. */
const refusedForNow = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN)\b/;

interface RouterOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
}

/**
 * Finds the node that has a slot, for commands and for subscriptions, and finds it again when the slot moves or its primary fails.
 * What one node is slow in, or does not do at all, delays nothing at another.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #tickets = new Tickets();
  readonly #shards = new Map<string, Shard>();
  readonly #downListeners = new Map<number, Set<() => void>>();
  readonly ears: Ears;
  #map = new SlotMap();
  /**
   * Where `MOVED` has led, by slot, until that node fails or says otherwise itself: one that lags behind goes on telling the place
   * before.
   */
  readonly #redirected = new Map<number, string>();
  #time: ServerTime;
  #refreshing: Promise<void> | undefined;
  #isReadingDrop = false;
  #calls = 0;
  #isClosed = false;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#time = new ServerTime(options.clock, this.#tickets);
    this.ears = new Ears(this, options.clock, options.random);
  }

  get map(): SlotMap {
    return this.#map;
  }

  /** The time of the slot's own server. */
  timeOf(slot: number): ServerTime {
    return this.#shardAt(slot)?.time ?? this.#time;
  }

  /** The same, or that of another server until an answer of its own tells it. */
  bestTimeOf(slot: number): ServerTime {
    const own = this.timeOf(slot);
    if (own.isKnown) {
      this.#time = own;
    }
    return own.isKnown ? own : this.#time;
  }

  /** Runs a script where the slot is. A refusal that changed nothing is not told before some time has passed. */
  async run(
    slot: number,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    this.#calls += 1;
    try {
      return await this.#run(slot, script, keys, args);
    } finally {
      this.#calls -= 1;
    }
  }

  async #run(
    slot: number,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#options;
    const giveUpAt = clock.now() + commandTimeoutMs * patience;
    for (let tries = 1; ; tries++) {
      const shard = await this.find(slot);
      try {
        return await shard.run(script, keys, args);
      } catch (error) {
        const isRepeatable = this.learn(error, shard);
        if (!isRepeatable || clock.now() >= giveUpAt) {
          throw error;
        }
        if (!messageOf(error).startsWith("MOVED ") || tries > mostRedirections) {
          await this.#pause(tries);
        }
      }
    }
  }

  /** A plain command to the slot's node. */
  async command(slot: number, name: string, args: readonly string[]): Promise<unknown> {
    return (await this.find(slot)).command(name, args);
  }

  /** The node with this address, whatever slots it has. */
  at(address: string): Shard {
    let shard = this.#shards.get(address);
    if (!shard) {
      const { client, clock, commandTimeoutMs } = this.#options;
      const { cut, dropped, ears } = this;
      const listener = { cut, dropped, deaf: ears.deaf, silent: this.doubt };
      shard = new Shard({
        client,
        clock,
        address,
        patienceMs: commandTimeoutMs,
        tickets: this.#tickets,
        listener,
      });
      this.#shards.set(address, shard);
    }
    return shard;
  }

  /** Calls the listener when the slot's node was lost, or is another. Returns its removal. */
  onDown(slot: number, listener: () => void): () => void {
    const listeners = this.#downListeners.get(slot) ?? new Set();
    this.#downListeners.set(slot, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#downListeners.get(slot) === listeners) {
        this.#downListeners.delete(slot);
      }
    };
  }

  /** Asks who has which slot. One question at a time, however many ask for it. */
  refresh(first?: string): Promise<void> {
    this.#refreshing ??= this.#refresh(first).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** A node does not answer: its slots may have another one by now. */
  readonly doubt = (shard: Shard): void => {
    for (const [slot, address] of this.#redirected) {
      if (address === shard.address) {
        this.#redirected.delete(slot);
      }
    }
    this.refresh().catch(() => undefined);
  };

  /** Hears nothing any more, and ends the connections when what was sent is answered, or could have been. */
  close(): void {
    const { clock, commandTimeoutMs } = this.#options;
    this.ears.close();
    const giveUpAt = clock.now() + commandTimeoutMs;
    const endWhenIdle = (): void => {
      if (this.#calls > 0 && clock.now() < giveUpAt) {
        clock.setTimer(endWhenIdle, closingGrainMs);
      } else {
        this.#end();
      }
    };
    clock.setTimer(endWhenIdle, closingGrainMs);
  }

  // What shards tell.

  readonly cut = (shard: Shard): void => {
    if (this.#shards.get(shard.address) !== shard) {
      return; // we ended it
    }
    for (const [slot, listeners] of this.#downListeners) {
      if (this.#map.ownerOf(slot) === shard.address) {
        tellAll(listeners);
      }
    }
    this.doubt(shard);
  };

  /** It knows who has the slot now: that is why. */
  readonly dropped = (shard: Shard): void => {
    if (!this.#isReadingDrop && !this.#isClosed) {
      this.#isReadingDrop = true;
      void Promise.resolve(this.#refreshing)
        .catch(() => undefined)
        .then(() => {
          this.#isReadingDrop = false;
          return this.refresh(shard.address);
        })
        .catch(() => undefined);
    }
  };

  #end(): void {
    this.#isClosed = true;
    for (const shard of this.#shards.values()) {
      shard.close();
    }
    this.#shards.clear();
  }

  #shardAt(slot: number): Shard | undefined {
    const owner = this.#map.ownerOf(slot);
    return owner === undefined ? undefined : this.at(owner);
  }

  /** The node that has the slot, as far as we know. */
  async find(slot: number): Promise<Shard> {
    if (this.#isClosed) {
      throw unavailable("the driver is closed");
    }
    if (this.#map.ownerOf(slot) === undefined) {
      await this.refresh();
    }
    const shard = this.#shardAt(slot);
    if (!shard) {
      throw unavailable(`no node has slot ${slot}`);
    }
    return shard;
  }

  /** What a failure says of the map. Returns whether the same call may be sent again: nothing was done, and it may be done next time. */
  learn(error: unknown, shard: Shard): boolean {
    const message = messageOf(error);
    const [, slot, address] = /^MOVED (\d+) (\S+)/.exec(message) ?? [];
    if (slot !== undefined && address !== undefined) {
      this.#move(Number(slot), completed(address, shard.address));
    }
    const wasNotSent = error instanceof EngineError && error.outcome === "none";
    const isRefusal = refusedForNow.test(message);
    const isRepeatable = isRefusal || wasNotSent;
    if (!/^(ASK|TRYAGAIN)\b/.test(message) && (isRepeatable || outcomeOf(error) === "unknown")) {
      this.doubt(shard);
    }
    return isRepeatable;
  }

  #pause(tries: number): Promise<void> {
    const { clock, random } = this.#options;
    return pause(clock, backoffMs(random, tries - 1, longestPauseMs));
  }

  async #refresh(first: string | undefined): Promise<void> {
    const { clock, commandTimeoutMs } = this.#options;
    const giveUpAt = clock.now() + commandTimeoutMs * patience;
    let candidates = this.#candidates(first);
    for (let tries = 1; candidates.size === 0 && clock.now() < giveUpAt; tries++) {
      await this.#pause(tries); // the client is still connecting
      candidates = this.#candidates(first);
    }
    const map = await this.#ask(Array.from(candidates));
    if (!this.#isClosed) {
      this.#adopt(map);
    }
  }

  /** Who may be asked for the map, the best first. */
  #candidates(first: string | undefined): Set<string> {
    const primaries = shuffled(this.#map.primaries(), this.#options.random);
    const replicas = primaries.flatMap((primary) => this.#map.replicasOf(primary));
    const preferred = first === undefined ? [] : [first];
    return new Set([...preferred, ...primaries, ...this.#options.client.known(), ...replicas]);
  }

  /** Asks one after the other; who takes long is not waited for before the next is asked, but its answer is welcome. */
  async #ask(candidates: readonly string[]): Promise<SlotMap> {
    const { clock, commandTimeoutMs } = this.#options;
    let failure: unknown = new Error("the client is not connected");
    const asked: Promise<SlotMap | undefined>[] = [];
    for (const address of candidates) {
      if (this.#isClosed) {
        break; // nobody would end a connection that is made now
      }
      const answer = this.at(address)
        .command("CLUSTER", ["SLOTS"])
        .then((told) => {
          const map = SlotMap.read(told, address);
          return map.isEmpty ? undefined : map;
        })
        .catch((error: unknown) => {
          failure = error;
          return undefined;
        });
      asked.push(answer);
      const map = await within(clock, hedgeMs, firstOf(asked));
      if (map) {
        return map;
      }
    }
    const late = await within(clock, commandTimeoutMs * patience, firstOf(asked));
    if (late) {
      return late;
    }
    throw unavailable(`no node of the cluster told its slots: ${messageOf(failure)}`);
  }

  #adopt(map: SlotMap): void {
    const before = this.#map;
    this.#map = map;
    for (const [slot, address] of this.#redirected) {
      if (map.teller !== address) {
        map.move(slot, address);
      } else if (map.ownerOf(slot) !== address) {
        this.#redirected.delete(slot);
      }
    }
    const watched = new Set([...this.#downListeners.keys(), ...this.ears.slots()]);
    for (const slot of watched) {
      const owner = before.ownerOf(slot);
      if (owner !== undefined && owner !== map.ownerOf(slot)) {
        this.#moved(slot);
      }
    }
    const primaries = new Set(map.primaries());
    for (const [address, shard] of this.#shards) {
      if (!primaries.has(address)) {
        this.#shards.delete(address);
        shard.close();
      }
    }
  }

  /** One slot is elsewhere. */
  #move(slot: number, address: string): void {
    this.#redirected.set(slot, address);
    if (this.#map.ownerOf(slot) !== address) {
      this.#map.move(slot, address);
      this.#moved(slot);
    }
  }

  #moved(slot: number): void {
    tellAll(this.#downListeners.get(slot) ?? []);
    this.ears.moved(slot);
  }
}

function unavailable(message: string): EngineError {
  return new EngineError(`Redis Cluster: ${message}`, { outcome: "none", retryable: true });
}

function tellAll(listeners: Iterable<() => void>): void {
  for (const listener of Array.from(listeners)) {
    listener();
  }
}

/** The first that is there; undefined when all are and none is. */
async function firstOf<T>(promises: readonly Promise<T | undefined>[]): Promise<T | undefined> {
  return new Promise((resolve) => {
    let left = promises.length;
    if (left === 0) {
      resolve(undefined);
    }
    for (const promise of promises) {
      void promise.then((value) => {
        left -= 1;
        if (value !== undefined || left === 0) {
          resolve(value);
        }
      });
    }
  });
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.fraction() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
