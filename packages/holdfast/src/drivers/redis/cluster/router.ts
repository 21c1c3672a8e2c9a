import type { Clock } from "../../../runtime/clock.ts";
import { EngineError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { pause, withTimeout } from "../../../runtime/timeout.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import type { Script } from "../protocol/script.ts";
import { ServerClock, TicketCounter } from "../server/server-clock.ts";
import { ClusterSubscriptions } from "./subscriptions.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { ClusterNode } from "./cluster-node.ts";
import { withMissingNodes, SlotMap } from "./slot-map.ts";

/** How long a redirected call goes on, as part of what a command may take: the rest is for the answer. */
const timeoutFactor = 0.5;
const maxRedirections = 5;
const maxPauseMs = 200;
/** The next node is asked for the map when the one before has not answered for so long, ms. */
const hedgeMs = 200;
const closingGrainMs = 5;

/** The server refused and did nothing: another node, or the same one a moment later, will not. */
const temporaryRefusals = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN)\b/;

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
  readonly #tickets = new TicketCounter();
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #downListeners = new Map<number, Set<() => void>>();
  readonly subscriptions: ClusterSubscriptions;
  #map = new SlotMap();
  /**
   * Where `MOVED` has led, by slot, until that node fails or says otherwise itself: one that lags behind goes on telling the place
   * before.
   */
  readonly #redirected = new Map<number, string>();
  #serverClock: ServerClock;
  #refreshing: Promise<void> | undefined;
  #isReadingDrop = false;
  #calls = 0;
  #isClosed = false;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#serverClock = new ServerClock(options.clock, this.#tickets);
    this.subscriptions = new ClusterSubscriptions(this, options.clock, options.random);
  }

  get map(): SlotMap {
    return this.#map;
  }

  /** The time of the slot's own server. */
  clockOf(slot: number): ServerClock {
    return this.#nodeAt(slot)?.serverClock ?? this.#serverClock;
  }

  /** The same, or that of another server until an answer of its own tells it. */
  bestClockOf(slot: number): ServerClock {
    const own = this.clockOf(slot);
    if (own.isKnown) {
      this.#serverClock = own;
    }
    return own.isKnown ? own : this.#serverClock;
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
    const deadline = clock.now() + commandTimeoutMs * timeoutFactor;
    for (let tries = 1; ; tries++) {
      const node = await this.find(slot);
      try {
        return await node.run(script, keys, args);
      } catch (error) {
        const isRepeatable = this.handleRedirect(error, node);
        if (!isRepeatable || clock.now() >= deadline) {
          throw error;
        }
        if (!messageOf(error).startsWith("MOVED ") || tries > maxRedirections) {
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
  at(address: string): ClusterNode {
    let node = this.#nodes.get(address);
    if (!node) {
      const { client, clock, commandTimeoutMs } = this.#options;
      const { disconnected, dropped, subscriptions } = this;
      const listener = {
        disconnected,
        dropped,
        unsubscribed: subscriptions.unsubscribed,
        unresponsive: this.invalidate,
      };
      node = new ClusterNode({
        client,
        clock,
        address,
        timeoutMs: commandTimeoutMs,
        tickets: this.#tickets,
        listener,
      });
      this.#nodes.set(address, node);
    }
    return node;
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
  readonly invalidate = (node: ClusterNode): void => {
    for (const [slot, address] of this.#redirected) {
      if (address === node.address) {
        this.#redirected.delete(slot);
      }
    }
    this.refresh().catch(() => undefined);
  };

  /** Hears nothing any more, and ends the connections when what was sent is answered, or could have been. */
  close(): void {
    const { clock, commandTimeoutMs } = this.#options;
    this.subscriptions.close();
    const deadline = clock.now() + commandTimeoutMs;
    const endWhenIdle = (): void => {
      if (this.#calls > 0 && clock.now() < deadline) {
        clock.setTimer(endWhenIdle, closingGrainMs);
      } else {
        this.#end();
      }
    };
    clock.setTimer(endWhenIdle, closingGrainMs);
  }

  // What shards tell.

  readonly disconnected = (node: ClusterNode): void => {
    if (this.#nodes.get(node.address) !== node) {
      return; // we ended it
    }
    for (const [slot, listeners] of this.#downListeners) {
      if (this.#map.ownerOf(slot) === node.address) {
        notifyAll(listeners);
      }
    }
    this.invalidate(node);
  };

  /** It knows who has the slot now: that is why. */
  readonly dropped = (node: ClusterNode): void => {
    if (!this.#isReadingDrop && !this.#isClosed) {
      this.#isReadingDrop = true;
      void Promise.resolve(this.#refreshing)
        .catch(() => undefined)
        .then(() => {
          this.#isReadingDrop = false;
          return this.refresh(node.address);
        })
        .catch(() => undefined);
    }
  };

  #end(): void {
    this.#isClosed = true;
    for (const node of this.#nodes.values()) {
      node.close();
    }
    this.#nodes.clear();
  }

  #nodeAt(slot: number): ClusterNode | undefined {
    const owner = this.#map.ownerOf(slot);
    return owner === undefined ? undefined : this.at(owner);
  }

  /** The node that has the slot, as far as we know. */
  async find(slot: number): Promise<ClusterNode> {
    if (this.#isClosed) {
      throw unavailable("the driver is closed");
    }
    if (this.#map.ownerOf(slot) === undefined) {
      await this.refresh();
    }
    const node = this.#nodeAt(slot);
    if (!node) {
      throw unavailable(`no node has slot ${slot}`);
    }
    return node;
  }

  /** What a failure says of the map. Returns whether the same call may be sent again: nothing was done, and it may be done next time. */
  handleRedirect(error: unknown, node: ClusterNode): boolean {
    const message = messageOf(error);
    const [, slot, address] = /^MOVED (\d+) (\S+)/.exec(message) ?? [];
    if (slot !== undefined && address !== undefined) {
      this.#move(Number(slot), withMissingNodes(address, node.address));
    }
    const wasNotSent = error instanceof EngineError && error.outcome === "none";
    const isRefusal = temporaryRefusals.test(message);
    const isRepeatable = isRefusal || wasNotSent;
    if (!/^(ASK|TRYAGAIN)\b/.test(message) && (isRepeatable || outcomeOf(error) === "unknown")) {
      this.invalidate(node);
    }
    return isRepeatable;
  }

  #pause(tries: number): Promise<void> {
    const { clock, random } = this.#options;
    return pause(clock, backoffMs(random, tries - 1, maxPauseMs));
  }

  async #refresh(first: string | undefined): Promise<void> {
    const { clock, commandTimeoutMs } = this.#options;
    const deadline = clock.now() + commandTimeoutMs * timeoutFactor;
    let candidates = this.#candidates(first);
    for (let tries = 1; candidates.size === 0 && clock.now() < deadline; tries++) {
      await this.#pause(tries); // the client is still connecting
      candidates = this.#candidates(first);
    }
    const map = await this.#requestMap(Array.from(candidates));
    if (!this.#isClosed) {
      this.#adoptMap(map);
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
  async #requestMap(candidates: readonly string[]): Promise<SlotMap> {
    const { clock, commandTimeoutMs } = this.#options;
    let failure: unknown = new Error("the client is not connected");
    const asked: Promise<SlotMap | undefined>[] = [];
    for (const address of candidates) {
      if (this.#isClosed) {
        break; // nobody would end a connection that is made now
      }
      const answer = this.at(address)
        .command("CLUSTER", ["SLOTS"])
        .then((reply) => {
          const map = SlotMap.read(reply, address);
          return map.isEmpty ? undefined : map;
        })
        .catch((error: unknown) => {
          failure = error;
          return undefined;
        });
      asked.push(answer);
      const map = await withTimeout(clock, hedgeMs, firstResult(asked));
      if (map) {
        return map;
      }
    }
    const late = await withTimeout(clock, commandTimeoutMs * timeoutFactor, firstResult(asked));
    if (late) {
      return late;
    }
    throw unavailable(`no node of the cluster told its slots: ${messageOf(failure)}`);
  }

  #adoptMap(map: SlotMap): void {
    const before = this.#map;
    this.#map = map;
    for (const [slot, address] of this.#redirected) {
      if (map.source !== address) {
        map.move(slot, address);
      } else if (map.ownerOf(slot) !== address) {
        this.#redirected.delete(slot);
      }
    }
    const watched = new Set([...this.#downListeners.keys(), ...this.subscriptions.slots()]);
    for (const slot of watched) {
      const owner = before.ownerOf(slot);
      if (owner !== undefined && owner !== map.ownerOf(slot)) {
        this.#moved(slot);
      }
    }
    const primaries = new Set(map.primaries());
    for (const [address, node] of this.#nodes) {
      if (!primaries.has(address)) {
        this.#nodes.delete(address);
        node.close();
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
    notifyAll(this.#downListeners.get(slot) ?? []);
    this.subscriptions.moved(slot);
  }
}

function unavailable(message: string): EngineError {
  return new EngineError(`Redis Cluster: ${message}`, { outcome: "none", retryable: true });
}

function notifyAll(listeners: Iterable<() => void>): void {
  for (const listener of Array.from(listeners)) {
    listener();
  }
}

/** The first that is there; undefined when all are and none is. */
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
