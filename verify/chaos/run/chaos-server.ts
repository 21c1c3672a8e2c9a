import { startRedis, stablePort, type RedisServer, type ServerClock } from "@holdfast/test-kit";
import { Redis } from "ioredis";

import { shortRunId, type ServerState } from "../judge/history.ts";
import type { NodeSetup } from "../plan/plan.ts";

const durable = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];
const startTimeoutMs = 15_000;
const startAttempts = 5;

/** One of the engine's servers, which stays the same over its restarts: its port, its folder, its clock. */
export class ChaosServer {
  readonly port: number;
  /** As the lab knows it. */
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
      readOnly: true, // a replica in a cluster is asked, too
    });
  }

  static async start(setup: NodeSetup, clock: ServerClock): Promise<ChaosServer> {
    const args = setup.durable ? durable : [];
    for (let attempt = 1; ; attempt += 1) {
      const port = await stablePort();
      try {
        return new ChaosServer(await startRedis({ port, args, env: clock.env }), clock);
      } catch (error) {
        // Between our look and its bind another program may have taken the port.
        if (attempt === startAttempts) {
          throw error;
        }
      }
    }
  }

  /** Tells of its present run, and from now on of each end and beginning. */
  watch(changed: (state: ServerState, run: string) => void): void {
    this.#onStateChange = changed;
    this.#publishState("up");
  }

  #publishState(state: ServerState): void {
    this.#onStateChange(state, shortRunId(this.server.runId));
  }

  /** It was not killed, or is back. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /**
   * SIGKILL, and so long afterwards the next run. Without a disk it has forgotten everything.
   * @param args asked for then: what it is told beside what it was told before
   */
  restart(whileDown: () => Promise<void>, args: () => readonly string[] = () => []): Promise<void> {
    const restarted = this.#restarted.then(() => this.#restart(whileDown, args)); // a slow one may be under way still
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

  /** It keeps its connections and answers nothing. */
  freeze(): void {
    if (this.#isUp) {
      this.server.freeze();
    }
  }

  thaw(): void {
    this.server.thaw();
  }

  /** As it says itself. */
  async isPrimary(): Promise<boolean> {
    const [role] = (await this.#direct.call("ROLE")) as [string];
    return role === "master";
  }

  /** As a replica: it has all that its primary wrote before, and hears what it writes. */
  async isReplicationInSync(): Promise<boolean> {
    return (await this.#direct.info("replication")).includes("master_link_status:up");
  }

  /** From now on it follows that one, as an operator would order it. */
  follow({ port }: ChaosServer): Promise<unknown> {
    return this.#direct.replicaof("127.0.0.1", port);
  }

  /** Its wall clock is ahead by so much more from now on. */
  step(ms: number): void {
    this.#set({ aheadMs: this.#aheadMs() + ms });
  }

  /** Its wall clock goes on from where it is at another speed. */
  setRate(rate: number): void {
    this.#set({ rate });
  }

  /** Of a cluster: in which slot a key of it is. */
  async slotOf(key: string): Promise<number> {
    return Number(await this.#direct.call("CLUSTER", "KEYSLOT", key));
  }

  /** Of a cluster: the slots that it has as a primary, as it says itself. */
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

  /** How many scripts it was asked to run since the run began, as far as its restarts let it count. */
  async scriptCount(): Promise<number> {
    const stats = await this.#direct.info("commandstats").catch(() => "");
    const calls = Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, count]) =>
      Number(count),
    );
    return calls.reduce((sum, count) => sum + count, this.#scriptsBefore);
  }

  /** Keys beside those that may stay: the counter of numbers, and with a TTL a quorum's counters, latches and who a client is. */
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
    // Down: what it is ahead by is lost rather than gained, as a clock that goes forward ends keys early.
    return Math.floor(aheadMs + (rate - 1) * (Date.now() - since));
  }

  #set({ aheadMs = this.#aheadMs(), rate = 1 }: { aheadMs?: number; rate?: number }): void {
    this.#time = { aheadMs, rate, since: Date.now() };
    this.#clock?.set({ aheadMs, rate });
  }
}

/** The one counter of a server, or of a slot, which has no expiry. A quorum's is of one key: `holdfast:fence:{lock:...}`. */
function isCounter(key: string): boolean {
  return /^holdfast:fence(:\{[a-z\d]+\})?$/.test(key);
}
