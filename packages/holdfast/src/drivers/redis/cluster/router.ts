import type { Clock } from "../../../runtime/clock.ts";
import { EngineError } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import type { Script } from "../protocol/script.ts";
import { ServerClock, TicketCounter } from "../server/server-clock.ts";
import { ClusterSubscriptions } from "./subscriptions.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { ClusterNode } from "./cluster-node.ts";
import { SlotListeners } from "./slot-listeners.ts";
import { withMissingHost, SlotMap } from "./slot-map.ts";
import { pauseAfter, SlotMapLoader, timeoutFactor, unavailable } from "./slot-map-loader.ts";

const maxRedirections = 5;
const closingGrainMs = 5;

/** The server refused the call and did nothing. Another node, or this node a moment later, will accept it. */
const temporaryRefusals = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN)\b/;

interface RouterOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
}

/**
 * Finds the node of a slot, for commands and for subscriptions. Finds another node if the slot moves or its primary fails. A slow or
 * unresponsive node delays no calls to other nodes.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #loader: SlotMapLoader;
  readonly #tickets = new TicketCounter();
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #downListeners = new SlotListeners();
  readonly subscriptions: ClusterSubscriptions;
  #map = new SlotMap();
  /**
   * The address from the last `MOVED`, by slot. The address overrides the maps of other nodes, because the map of another node may be
   * older. It is valid until its node fails, or that node itself names another owner.
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
    this.#loader = new SlotMapLoader({
      ...options,
      command: (address, name, args) => this.at(address).command(name, args),
    });
    this.subscriptions = new ClusterSubscriptions(this, options.clock, options.random);
  }

  get map(): SlotMap {
    return this.#map;
  }

  /** The clock of the slot's own server. */
  clockOf(slot: number): ServerClock {
    return this.#nodeAt(slot)?.serverClock ?? this.#serverClock;
  }

  /** The clock of the slot's own server. Until that server has replied, the clock of another server. */
  bestClockOf(slot: number): ServerClock {
    const own = this.clockOf(slot);
    if (own.isKnown) {
      this.#serverClock = own;
    }
    return own.isKnown ? own : this.#serverClock;
  }

  /** Runs a script on the node of the slot. A refused call is repeated for some time, because it has changed nothing. */
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
    const { clock, random, commandTimeoutMs } = this.#options;
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
          await pauseAfter(clock, random, tries);
        }
      }
    }
  }

  /** Sends a plain command to the node of the slot. */
  async command(slot: number, name: string, args: readonly string[]): Promise<unknown> {
    return (await this.find(slot)).command(name, args);
  }

  /** The node with this address, whichever slots it has. */
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

  /** Calls the listener if the connection to the slot's node is lost, or the slot has another node. Returns a function that removes it. */
  onDown(slot: number, listener: () => void): () => void {
    return this.#downListeners.add(slot, listener);
  }

  /** Loads the map of slots. Concurrent callers share one load. */
  refresh(first?: string): Promise<void> {
    this.#refreshing ??= this.#refresh(first).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** The node does not answer, so its slots may have another node now. Loads the map of slots. */
  readonly invalidate = (node: ClusterNode): void => {
    for (const [slot, address] of this.#redirected) {
      if (address === node.address) {
        this.#redirected.delete(slot);
      }
    }
    this.refresh().catch(() => undefined);
  };

  /** Ends the subscriptions at once. Ends the connections when all calls are answered, or after `commandTimeoutMs`. */
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

  // Events of the nodes.

  readonly disconnected = (node: ClusterNode): void => {
    if (this.#nodes.get(node.address) !== node) {
      return; // the router closed this connection
    }
    this.#downListeners.notifyWhere((slot) => this.#map.ownerOf(slot) === node.address);
    this.invalidate(node);
  };

  /** The node ended a subscription because the slot has moved. That node knows the new owner. */
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
    this.#loader.close();
    for (const node of this.#nodes.values()) {
      node.close();
    }
    this.#nodes.clear();
  }

  #nodeAt(slot: number): ClusterNode | undefined {
    const owner = this.#map.ownerOf(slot);
    return owner === undefined ? undefined : this.at(owner);
  }

  /** The node of the slot, by the present map. */
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

  /** Updates the map after a failed call. Returns whether the call may be repeated, because the server did nothing. */
  handleRedirect(error: unknown, node: ClusterNode): boolean {
    const message = messageOf(error);
    const [, slot, address] = /^MOVED (\d+) (\S+)/.exec(message) ?? [];
    if (slot !== undefined && address !== undefined) {
      this.#move(Number(slot), withMissingHost(address, node.address));
    }
    const wasNotSent = error instanceof EngineError && error.outcome === "none";
    const isRefusal = temporaryRefusals.test(message);
    const isRepeatable = isRefusal || wasNotSent;
    if (!/^(ASK|TRYAGAIN)\b/.test(message) && (isRepeatable || outcomeOf(error) === "unknown")) {
      this.invalidate(node);
    }
    return isRepeatable;
  }

  async #refresh(first: string | undefined): Promise<void> {
    const map = await this.#loader.load(this.#map, first);
    if (!this.#isClosed) {
      this.#adoptMap(map);
    }
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
    const watched = new Set([...this.#downListeners.slots(), ...this.subscriptions.slots()]);
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

  /** Moves one slot to the node with this address. */
  #move(slot: number, address: string): void {
    this.#redirected.set(slot, address);
    if (this.#map.ownerOf(slot) !== address) {
      this.#map.move(slot, address);
      this.#moved(slot);
    }
  }

  #moved(slot: number): void {
    this.#downListeners.notify(slot);
    this.subscriptions.moved(slot);
  }
}
