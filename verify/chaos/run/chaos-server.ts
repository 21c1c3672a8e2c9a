import { startRedis, stablePort, type RedisServer, type ServerClock } from "@holdfast/test-kit";
import { Redis } from "ioredis";

import { shortRunId, type ServerState } from "../judge/history.ts";
import type { NodeSetup } from "../plan/plan.ts";

const durable = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];
const startTimeoutMs = 15_000;
const startAttempts = 5;

/** One server of the engine. Its port, folder and clock stay the same over restarts. */
export class ChaosServer {
  readonly port: number;
  /** The server process. */
  readonly server: RedisServer;
  readonly #clock: ServerClock | undefined;
  readonly #direct: Redis;
  #isUp = true;
  #restarted: Promise<void> = Promise.resolve();
  #scriptsBefore = 0;
  #onStateChange: (state: ServerState, run: string) => void = () => undefined;
  #time: { aheadMs: number; rate: number; since: number } = { aheadMs: 0, rate: 1, since: Date.now() };

  constructor(server: RedisServer, clock?: ServerClock) {
    this.port = server.port;
    this.server = server;
    this.#clock = clock;
    this.#direct = server.client({
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      commandTimeout: startTimeoutMs,
      readOnly: true, // replicas of a cluster must reply too
    });
  }

  static async start(setup: NodeSetup, clock: ServerClock): Promise<ChaosServer> {
    const args = setup.durable ? durable : [];
    for (let attempt = 1; ; attempt += 1) {
      const port = await stablePort();
      try {
        return new ChaosServer(await startRedis({ port, args, env: clock.env }), clock);
      } catch (error) {
        // Between our check and the server's bind another program may have taken the port.
        if (attempt === startAttempts) {
          throw error;
        }
      }
    }
  }

  /** Reports the current run, and from then on every end and start. */
  watch(changed: (state: ServerState, run: string) => void): void {
    this.#onStateChange = changed;
    this.#publishState("up");
  }

  #publishState(state: ServerState): void {
    this.#onStateChange(state, shortRunId(this.server.runId));
  }

  /** Whether the server runs. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /**
   * Kills the server, and starts its next run after `whileDown`. A server without durability loses all data.
   * @param args determined at the start: arguments beside the former ones
   */
  restart(whileDown: () => Promise<void>, args: () => readonly string[] = () => []): Promise<void> {
    const restarted = this.#restarted.then(() => this.#restart(whileDown, args)); // an earlier restart may still run
    this.#restarted = restarted.catch(() => undefined);
    return restarted;
  }

  async #restart(whileDown: () => Promise<void>, args: () => readonly string[]): Promise<void> {
    this.#scriptsBefore = await this.scriptCount();
    this.#isUp = false;
    this.server.kill("SIGKILL");
    this.#publishState("killed");
    await whileDown();
    const own = args();
    this.#publishState("starting");
    await this.server.restart(own);
    this.#isUp = true;
    this.#publishState("up");
  }

  /** Stops the process. Connections stay open, but the server does not reply. */
  freeze(): void {
    if (this.#isUp) {
      this.server.freeze();
    }
  }

  thaw(): void {
    this.server.thaw();
  }

  /** Whether the server reports the role of the primary. */
  async isPrimary(): Promise<boolean> {
    const [role] = (await this.#direct.call("ROLE")) as [string];
    return role === "master";
  }

  /** Whether this replica has all earlier writes of its primary, and receives new ones. */
  async isReplicationInSync(): Promise<boolean> {
    return (await this.#direct.info("replication")).includes("master_link_status:up");
  }

  /** Makes the server a replica of another, as an operator would. */
  follow({ port }: ChaosServer): Promise<unknown> {
    return this.#direct.replicaof("127.0.0.1", port);
  }

  /** Moves the wall clock forward by this time. */
  step(ms: number): void {
    this.#set({ aheadMs: this.#aheadMs() + ms });
  }

  /** Lets the wall clock continue at another speed. */
  setRate(rate: number): void {
    this.#set({ rate });
  }

  /** The slot of a key, in a cluster. */
  async slotOf(key: string): Promise<number> {
    return Number(await this.#direct.call("CLUSTER", "KEYSLOT", key));
  }

  /** The slots of which the server is the primary, in a cluster, as the server reports them. */
  async slots(): Promise<[first: number, last: number][]> {
    const reply = (await this.#direct.call("CLUSTER", "SLOTS")) as [number, number, [string, number]][];
    return reply.flatMap(([first, last, [, port]]) => (port === this.port ? [[first, last]] : []));
  }

  flushScripts(): Promise<unknown> {
    return this.#direct.script("FLUSH");
  }

  endConnections(): Promise<unknown> {
    return this.#direct.call("CLIENT", "KILL", "TYPE", "normal");
  }

  endSubscriptions(): Promise<unknown> {
    return this.#direct.call("CLIENT", "KILL", "TYPE", "pubsub");
  }

  /** The number of scripts since the start of the run, as far as restarts let the server count. */
  async scriptCount(): Promise<number> {
    const stats = await this.#direct.info("commandstats").catch(() => "");
    const calls = Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, count]) =>
      Number(count),
    );
    return calls.reduce((sum, count) => sum + count, this.#scriptsBefore);
  }

  /**
   * Keys that should not remain. Allowed are the counter of fencing numbers, and with a TTL a quorum's counters, latches and client records.
   */
  async residue(): Promise<string[]> {
    const keys = await this.#direct.keys("*");
    const remaining: string[] = [];
    for (const key of keys) {
      const mayStay = /^holdfast:(fence|client):|^(lock:|holdfast:queue:\{lock:)latch-/.test(key);
      const ttlMs = await this.#direct.pttl(key);
      if (!isCounter(key) && (mayStay ? ttlMs === -1 : ttlMs !== -2)) {
        const type = await this.#direct.type(key);
        const content =
          type === "zset"
            ? await this.#direct.zrange(key, "0", "9")
            : await this.#direct.get(key).catch(() => type);
        remaining.push(`${key} (${ttlMs === -1 ? "without a TTL" : `${ttlMs} ms`}): ${String(content)}`);
      }
    }
    return remaining;
  }

  #aheadMs(): number {
    const { aheadMs, rate, since } = this.#time;
    // While the server is down, it loses its lead instead of gaining more, because a clock that moves forward expires keys early.
    return Math.floor(aheadMs + (rate - 1) * (Date.now() - since));
  }

  #set({ aheadMs = this.#aheadMs(), rate = 1 }: { aheadMs?: number; rate?: number }): void {
    this.#time = { aheadMs, rate, since: Date.now() };
    this.#clock?.set({ aheadMs, rate });
  }
}

/** The counter of a server or of a slot, which has no expiry. A counter of a quorum is for one key: `holdfast:fence:{lock:...}`. */
function isCounter(key: string): boolean {
  return /^holdfast:fence(:\{[a-z\d]+\})?$/.test(key);
}
