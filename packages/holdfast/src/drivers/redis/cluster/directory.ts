import type { Timer } from "../../../runtime/clock.ts";
import { refusal } from "../../../options.ts";
import type { NodeState } from "../../../lock-state.ts";
import { momentOf } from "../../../runtime/clock.ts";
import { within } from "../../../runtime/timeout.ts";
import { checkCursor, readPage, type Directory, type Page } from "../single/server-directory.ts";
import { timeoutError } from "../server/errors.ts";
import { readGreeting, stateOf } from "../server/handshake.ts";
import { slotOf, tagOf } from "./hash-slot.ts";
import { clientKey, type LockKeys } from "../protocol/keys.ts";
import { Node, type Membership, type NodeListener } from "../server/server.ts";
import type { RedisSettings } from "../options.ts";
import type { Script } from "../protocol/script.ts";
import { clientInfoScript, handshakeScript, scanScript } from "../protocol/scripts.generated.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { Router } from "./router.ts";
import { SlotConnection } from "./slot-connection.ts";

/** A slot that nobody asked for in so long a time is forgotten: who waits or holds asks more often. */
const idleMs = 300_000;
const homeRetryMs = 500;

interface ClusterSettings extends RedisSettings {
  readonly client: ClusterClient;
  readonly clientId: string;
  readonly listener: NodeListener;
}

/**
 * Of a Redis Cluster: a node for each slot in use, made when it is needed, as scripts and sharded messages stay within a slot.
 * One more, at home in the slot of our description, hears by a plain channel, which reaches all nodes, what is ended by force.
 */
export class ClusterDirectory implements Directory {
  #settings: ClusterSettings;
  readonly #router: Router;
  readonly #nodes = new Map<number, Node>();
  #home: Node;
  #about: readonly string[] = [];
  #homeRetry: Timer;
  #sweep: Timer;
  #isClosed = false;

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    this.#router = new Router(settings);
    this.#home = this.#makeNode(slotOf(clientKey(settings.clientId)), undefined);
    this.#sweepLater();
  }

  nodeOf([lock]: LockKeys): Node {
    const slot = slotOf(lock);
    let node = this.#nodes.get(slot);
    if (!node) {
      node = this.#makeNode(slot, tagOf(slot));
      this.#nodes.set(slot, node);
    }
    return node;
  }

  introduce(about: readonly string[]): void {
    this.#about = about;
    this.#home.introduce(about);
    this.#meetHome();
  }

  rename(clientId: string): void {
    this.#settings = { ...this.#settings, clientId };
    for (const node of this.#nodes.values()) {
      node.rename(clientId);
    }
    this.#home.close();
    this.#home = this.#makeNode(slotOf(clientKey(clientId)), undefined);
    this.introduce(this.#about);
  }

  check([lock, ...derived]: LockKeys, key: string): void {
    const slot = slotOf(lock);
    if (derived.some((other) => slotOf(other) !== slot)) {
      throw refusal(
        "key",
        "braces that are a hash tag, or none, as a cluster has all keys of a lock in one slot",
        key,
      );
    }
  }

  areTogether(locks: readonly LockKeys[]): boolean {
    return new Set(locks.map(([lock]) => slotOf(lock))).size === 1;
  }

  /** Through one primary after the other, in the order of their addresses; the cursor names the present one. */
  async scan(cursor: string | null, pattern: string, limit: number): Promise<Page> {
    checkCursor(cursor, /^[^|]+\|(\d{1,20})$/);
    const [present = "", at = "0"] = cursor?.split("|") ?? [];
    if (this.#router.map.isEmpty || cursor === null) {
      await this.#router.refresh();
    }
    const primaries = this.#router.map.primaries();
    const index = primaries.findIndex((address) => address >= present);
    const address = primaries[index];
    if (address === undefined) {
      return { locks: [], cursor: null };
    }
    const begin = address === present ? at : "0";
    const [next, locks] = readPage(await this.#ask(address, scanScript, [begin, pattern, String(limit)]));
    const following = primaries[index + 1];
    if (next !== "0") {
      return { locks, cursor: `${address}|${next}` };
    }
    return { locks, cursor: following === undefined ? null : `${following}|0` };
  }

  async states(): Promise<NodeState[]> {
    await this.#router.refresh();
    return Promise.all(this.#router.map.primaries().map((address) => this.#stateOf(address)));
  }

  close(): void {
    const { clock } = this.#settings;
    this.#isClosed = true;
    clock.clearTimer(this.#homeRetry);
    clock.clearTimer(this.#sweep);
    this.#home.close();
    for (const node of this.#nodes.values()) {
      node.close();
    }
    this.#nodes.clear();
    this.#router.close();
  }

  #makeNode(slot: number, tag: string | undefined): Node {
    const membership: Membership = {
      tag,
      ownTime: () => this.#router.timeOf(slot),
      bestTime: () => this.#router.bestTimeOf(slot),
      clients: (keys) => this.#describe(keys),
    };
    return new Node({ ...this.#settings, connection: new SlotConnection(this.#router, slot), membership });
  }

  #meetHome(): void {
    this.#home.meet().catch(() => {
      if (!this.#isClosed) {
        this.#homeRetry = this.#settings.clock.setTimer(() => this.#meetHome(), homeRetryMs);
      }
    });
  }

  #sweepLater(): void {
    const { clock } = this.#settings;
    this.#sweep = clock.setTimer(() => {
      for (const [slot, node] of this.#nodes) {
        if (clock.now() - node.usedAt > idleMs) {
          this.#nodes.delete(slot);
          node.close();
        }
      }
      this.#sweepLater();
    }, idleMs / 4);
  }

  /** The descriptions of clientInfoScript, each from its own slot; nothing of those whose node does not answer. */
  #describe(keys: readonly string[]): Promise<unknown[]> {
    return Promise.all(
      keys.map(async (key) => {
        const { clock, commandTimeoutMs } = this.#settings;
        const asked = this.#router.run(slotOf(key), clientInfoScript, [key], []).catch(() => undefined);
        const answer = (await within(clock, commandTimeoutMs, asked)) as unknown[] | undefined;
        return answer?.[0] ?? [];
      }),
    );
  }

  async #ask(address: string, script: Script, args: readonly string[]): Promise<unknown> {
    return this.#inTime(this.#router.at(address).run(script, [], args));
  }

  async #inTime(asked: Promise<unknown>): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#settings;
    const answer = await within(clock, commandTimeoutMs, asked);
    if (answer === undefined) {
      throw timeoutError(commandTimeoutMs);
    }
    return answer;
  }

  async #stateOf(address: string): Promise<NodeState> {
    const { map } = this.#router;
    const sent = momentOf(this.#settings.clock);
    const info = this.#inTime(this.#router.at(address).command("CLUSTER", ["INFO"])).catch(() => undefined);
    const state = await stateOf(
      { node: address, clock: this.#settings.clock, sent, notifications: this.#notifications(address) },
      {
        greet: async () =>
          readGreeting((await this.#ask(address, handshakeScript, ["", "n", "", "0"])) as unknown[]),
        replication: () => this.#inTime(this.#router.at(address).command("INFO", ["replication"])),
      },
    );
    const told = /cluster_state:(\w+)/.exec(String(await info))?.[1] ?? null;
    return {
      ...state,
      cluster: { state: told, slots: map.countOf(address), replicas: map.replicasOf(address) },
    };
  }

  /** Of the slots there that hear grants the worst; of none, how we hear what is ended by force. */
  #notifications(address: string): NodeState["notifications"] {
    const heard = Array.from(this.#nodes.values())
      .filter((node) => node.listens && node.connection.name === address)
      .map(({ hearing }) => hearing);
    const worst = (["unavailable", "unproved"] as const).find((hearing) => heard.includes(hearing));
    return worst ?? this.#home.hearing;
  }
}
