import { setTimeout as pause } from "node:timers/promises";

import {
  joinedEnv,
  startRedis,
  stablePort,
  type RedisServer,
  type ServerClock,
  type SyncedFiles,
} from "@holdfast/test-kit";
import { Redis } from "ioredis";

import type { NodeSetup } from "../plan/plan.ts";
import { ChaosServer } from "./chaos-server.ts";

const logging = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];
const durable = [...logging, "--no-appendfsync-on-rewrite", "no"];
const losingRewrites = [...logging, "--no-appendfsync-on-rewrite", "yes"];
/** A rewrite takes this long for each key, in µs. */
const slowRewrite = ["rdb-key-save-delay", "50000"] as const;
/** The server grants for this long during a rewrite before it is killed. */
const rewriteMs = 300;
const startTimeoutMs = 15_000;
const startAttempts = 5;

/** A server of Redis. */
export class RedisChaosServer extends ChaosServer {
  readonly port: number;
  /** The server process. */
  readonly server: RedisServer;
  readonly #direct: Redis;
  readonly #synced: SyncedFiles | undefined;
  #scriptsBefore = 0;
  /** Of the present run. */
  #settings: "forgetful" | "durable" | "losing rewrites";
  /** How the present run ends. */
  #ending: "kill" | "lose power" | "lose power during a rewrite" = "kill";
  /** A lost write may have removed a queue entry, which then stays until its TTL. */
  #hasLostWrites = false;
  /** The present run was made durable, and its first rewrite has ended. */
  #hasFirstRewrite = false;

  constructor(
    server: RedisServer,
    { durable: isDurable, losesRewrites }: NodeSetup,
    clock?: ServerClock,
    synced?: SyncedFiles,
  ) {
    super(clock);
    this.#settings = isDurable ? "durable" : losesRewrites ? "losing rewrites" : "forgetful";
    this.#synced = synced;
    this.port = server.port;
    this.server = server;
    this.#direct = server.client({
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      commandTimeout: startTimeoutMs,
      readOnly: true, // replicas of a cluster must reply too
    });
  }

  static async launch(setup: NodeSetup, clock: ServerClock, synced: SyncedFiles): Promise<RedisChaosServer> {
    const args = setup.durable ? durable : setup.losesRewrites ? losingRewrites : [];
    const env = joinedEnv(clock.env, synced.env);
    for (let attempt = 1; ; attempt += 1) {
      const port = await stablePort();
      try {
        return new RedisChaosServer(await startRedis({ port, args, env }), setup, clock, synced);
      } catch (error) {
        // Between our check and the server's bind another program may have taken the port.
        if (attempt === startAttempts) {
          throw error;
        }
      }
    }
  }

  protected get runId(): string {
    return this.server.runId;
  }

  protected override get isDurable(): boolean {
    return this.#settings === "durable" || this.#hasFirstRewrite;
  }

  protected async kill(): Promise<void> {
    this.#scriptsBefore = await this.scriptCount();
    if (this.#settings === "losing rewrites") {
      this.#ending = "lose power during a rewrite";
      this.#hasLostWrites = true;
    }
    if (this.#ending === "lose power during a rewrite") {
      await this.#direct.config("SET", ...slowRewrite);
      await this.#direct.bgrewriteaof().catch(() => undefined); // a rewrite is in progress
      await pause(rewriteMs);
    }
    this.server.kill("SIGKILL");
  }

  protected async start(args: readonly string[]): Promise<void> {
    const losesPower = this.#ending !== "kill";
    this.#ending = "kill";
    const own = this.#settings === "durable" ? durable : []; // it may have become durable
    await this.server.restart([...own, ...args], async () => {
      if (losesPower) {
        await this.#synced?.losePower(this.server.folder);
      }
    });
  }

  override losePower(duringRewrite: boolean, whileDown: () => Promise<void>): Promise<void> {
    this.#ending = duringRewrite ? "lose power during a rewrite" : "lose power";
    return this.restart(whileDown);
  }

  override async becomeDurable(atRunTime: boolean, whileDown: () => Promise<void>): Promise<void> {
    if (atRunTime && this.#settings === "forgetful") {
      await this.#direct.config("SET", ...slowRewrite);
      await this.#direct.config("SET", "appendfsync", "always");
      await this.#direct.config("SET", "appendonly", "yes");
      await pause(rewriteMs);
      this.#hasFirstRewrite = /aof_rewrite_in_progress:0/.test(await this.#direct.info("persistence"));
    }
    await this.restart(async () => {
      this.#settings = "durable";
      this.#hasFirstRewrite = false;
      await whileDown();
    });
  }

  protected stopProcess(): void {
    this.server.freeze();
  }

  protected continueProcess(): void {
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
  follow({ port }: RedisChaosServer): Promise<unknown> {
    return this.#direct.replicaof("127.0.0.1", port);
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

  override flushScripts(): Promise<unknown> {
    return this.#direct.script("FLUSH");
  }

  override endConnections(): Promise<unknown> {
    return this.#direct.call("CLIENT", "KILL", "TYPE", "normal");
  }

  override endSubscriptions(): Promise<unknown> {
    return this.#direct.call("CLIENT", "KILL", "TYPE", "pubsub");
  }

  /** The number of scripts since the start of the run, as far as restarts let the server count. */
  override async scriptCount(): Promise<number> {
    const stats = await this.#direct.info("commandstats").catch(() => "");
    const calls = Array.from(stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g), ([, count]) =>
      Number(count),
    );
    return calls.reduce((sum, count) => sum + count, this.#scriptsBefore);
  }

  /**
   * Keys that should not remain. Allowed are the counter of fencing numbers and the audit. With a TTL also a quorum's counters, latches
   * and client records are allowed, and after a loss of writes all keys.
   */
  async residue(): Promise<string[]> {
    const keys = await this.#direct.keys("*");
    const remaining: string[] = [];
    for (const key of keys) {
      const mayStay =
        this.#hasLostWrites || /^holdfast:(fence|client):|^(lock:|holdfast:queue:\{lock:)latch-/.test(key);
      const ttlMs = await this.#direct.pttl(key);
      if (!isCounter(key) && !key.startsWith("holdfast:audit:") && (mayStay ? ttlMs === -1 : ttlMs !== -2)) {
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
}

/** The counter of a server or of a slot, which has no expiry. A counter of a quorum is for one key: `holdfast:fence:{lock:...}`. */
function isCounter(key: string): boolean {
  return /^holdfast:fence(:\{[a-z\d]+\})?$/.test(key);
}
