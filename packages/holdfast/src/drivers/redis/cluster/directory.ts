import { instantNow, type Timer } from "../../../runtime/clock.ts";
import { invalidKey } from "../../../errors.ts";
import type { NodeState } from "../../../lock-state.ts";
import { withTimeout } from "../../../runtime/timeout.ts";
import {
  checkCursor,
  parsePage,
  type Page,
  type ServerDirectory,
  singleServerBatches,
  type StoredAudit,
} from "../single/server-directory.ts";
import { timeoutError } from "../server/errors.ts";
import { parseHandshake, nodeStateOf } from "../server/handshake.ts";
import { readAudits } from "./audits.ts";
import { slotOf, tagOf } from "./hash-slot.ts";
import { clientKey, counterKey, type KeySpace, type LockKeys } from "../protocol/keys.ts";
import { type ClusterSlot, RedisServer, type ServerListener } from "../server/server.ts";
import type { RedisSettings } from "../options.ts";
import type { Script } from "../protocol/script.ts";
import type { DirectoryLink } from "../processes/directory.ts";
import {
  clientInfoScript,
  handshakeScript,
  processesScript,
  scanScript,
} from "../protocol/scripts.generated.ts";
import type { ClusterClient } from "../clients/cluster-client.ts";
import { Router } from "./router.ts";
import { SlotConnection } from "./slot-connection.ts";

/** The server of a slot is closed if the slot is unused for this time. Waiters and holders send requests more often. */
const idleMs = 300_000;
const homeRetryMs = 500;

interface ClusterSettings extends RedisSettings {
  readonly client: ClusterClient;
  readonly clientId: string;
  readonly listener: ServerListener;
}

/**
 * The directory of a Redis Cluster. Each slot in use has a server of its own, because scripts and sharded notifications stay in a slot.
 *
 * The home server belongs to the slot of the client's description. Its subscription to a plain channel, which reaches all nodes,
 * receives the breaks of this client's grants.
 */
export class ClusterDirectory implements ServerDirectory {
  #settings: ClusterSettings;
  readonly #router: Router;
  readonly #servers = new Map<number, RedisServer>();
  #homeServer: RedisServer;
  #clientInfo: readonly string[] = [];
  #homeRetry: Timer;
  #sweep: Timer;
  #isClosed = false;

  constructor(settings: ClusterSettings) {
    this.#settings = settings;
    this.#router = new Router(settings);
    this.#homeServer = this.#createServer(slotOf(clientKey(settings.clientId)), undefined);
    this.#sweepLater();
  }

  serverFor([lock]: LockKeys): RedisServer {
    const slot = slotOf(lock);
    let server = this.#servers.get(slot);
    if (!server) {
      server = this.#createServer(slot, tagOf(slot));
      this.#servers.set(slot, server);
    }
    return server;
  }

  setClientInfo(info: readonly string[]): void {
    this.#clientInfo = info;
    this.#homeServer.setClientInfo(info);
    this.#handshakeHome();
  }

  rename(clientId: string): void {
    this.#settings = { ...this.#settings, clientId };
    for (const server of this.#servers.values()) {
      server.rename(clientId);
    }
    this.#homeServer.close();
    this.#homeServer = this.#createServer(slotOf(clientKey(clientId)), undefined);
    this.setClientInfo(this.#clientInfo);
  }

  check([lock, ...derived]: LockKeys, key: string): void {
    const slot = slotOf(lock);
    if (derived.some((other) => slotOf(other) !== slot)) {
      const rule =
        "a complete hash tag or no braces, because all keys of a lock must be in one slot of the cluster";
      throw invalidKey(`The key "${key}" needs ${rule}`, key);
    }
  }

  link(key: string): DirectoryLink {
    const run: DirectoryLink["run"] = (args) =>
      this.#inTime(this.#router.run(slotOf(key), processesScript, [key], args));
    return { server: this.#homeServer, countsReceivers: false, run };
  }

  /** Scans one primary after the other, in the order of their addresses. The cursor names the present primary. */
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
    const [next, locks] = parsePage(await this.#run(address, scanScript, [begin, pattern, String(limit)]));
    const following = primaries[index + 1];
    if (next !== "0") {
      return { locks, cursor: `${address}|${next}` };
    }
    return { locks, cursor: following === undefined ? null : `${following}|0` };
  }

  auditSlotOf([lock]: LockKeys): { slot: number; tag: string } {
    const slot = slotOf(lock);
    return { slot, tag: tagOf(slot) };
  }

  async readAudits(keySpace: KeySpace, keepFrom: string): Promise<StoredAudit[]> {
    await this.#inTime(this.#router.refresh().then(() => true));
    return readAudits(this.#router.map, (...call) => this.#run(...call), keySpace, keepFrom);
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
    this.#homeServer.close();
    for (const server of this.#servers.values()) {
      server.close();
    }
    this.#servers.clear();
    this.#router.close();
  }

  #createServer(slot: number, tag: string | undefined): RedisServer {
    const slotOptions: ClusterSlot = {
      tag,
      ownClock: () => this.#router.clockOf(slot),
      bestClock: () => this.#router.bestClockOf(slot),
      clients: (keys) => this.#describe(keys),
    };
    const { queueBound, commandTimeoutMs } = this.#settings;
    return new RedisServer({
      ...this.#settings,
      connection: new SlotConnection(this.#router, slot),
      batches: singleServerBatches(counterKey(tag), queueBound, commandTimeoutMs),
      slot: slotOptions,
    });
  }

  #handshakeHome(): void {
    this.#homeServer.handshake().catch(() => {
      if (!this.#isClosed) {
        this.#homeRetry = this.#settings.clock.setTimer(() => this.#handshakeHome(), homeRetryMs);
      }
    });
  }

  #sweepLater(): void {
    const { clock } = this.#settings;
    this.#sweep = clock.setTimer(() => {
      for (const [slot, server] of this.#servers) {
        if (clock.now() - server.usedAt > idleMs) {
          this.#servers.delete(slot);
          server.close();
        }
      }
      this.#sweepLater();
    }, idleMs / 4);
  }

  /** The descriptions of clients, each from its own slot. Empty for a client whose node does not answer. */
  #describe(keys: readonly string[]): Promise<unknown[]> {
    return Promise.all(
      keys.map(async (key) => {
        const { clock, commandTimeoutMs } = this.#settings;
        const request = this.#router.run(slotOf(key), clientInfoScript, [key], []).catch(() => undefined);
        const answer = (await withTimeout(clock, commandTimeoutMs, request)) as unknown[] | undefined;
        return answer?.[0] ?? [];
      }),
    );
  }

  async #run(address: string, script: Script, args: readonly string[]): Promise<unknown> {
    return this.#inTime(this.#router.at(address).run(script, [], args));
  }

  async #inTime(request: Promise<unknown>): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#settings;
    const answer = await withTimeout(clock, commandTimeoutMs, request);
    if (answer === undefined) {
      throw timeoutError(commandTimeoutMs);
    }
    return answer;
  }

  async #stateOf(address: string): Promise<NodeState> {
    const { map } = this.#router;
    const sent = instantNow(this.#settings.clock);
    const info = this.#inTime(this.#router.at(address).command("CLUSTER", ["INFO"])).catch(() => undefined);
    const state = await nodeStateOf(
      { node: address, clock: this.#settings.clock, sent, notifications: this.#notificationStatus(address) },
      async () =>
        parseHandshake((await this.#run(address, handshakeScript, ["", "n", "", "0"])) as unknown[]),
    );
    const fields = /cluster_state:(\w+)/.exec(String(await info))?.[1] ?? null;
    return {
      ...state,
      cluster: { state: fields, slots: map.countOf(address), replicas: map.replicasOf(address) },
    };
  }

  /** The worst status of the subscriptions on the node. Without subscriptions there, the status of the home server. */
  #notificationStatus(address: string): NodeState["notifications"] {
    const statuses = Array.from(this.#servers.values())
      .filter((server) => server.isListening && server.connection.name === address)
      .map(({ notificationStatus: status }) => status);
    const worst = (["unavailable", "unverified"] as const).find((status) => statuses.includes(status));
    return worst ?? this.#homeServer.notificationStatus;
  }
}
