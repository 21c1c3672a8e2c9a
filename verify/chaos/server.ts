import { mkdir } from "node:fs/promises";

import { startRedis, steadyPort, type RedisServer, type ServerClock } from "@holdfast/lab";
import { Redis } from "ioredis";

import type { NodeSetup } from "./plan.ts";

const durable = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb"];
const answersWithinMs = 15_000;
const startAttempts = 5;

/** One of the engine's servers, which stays the same over its restarts: its port, its folder, its clock. */
export class ChaosServer {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #clock: ServerClock;
  readonly #direct: Redis;
  #running: RedisServer | undefined;
  #scriptsBefore = 0;
  #time: { aheadMs: number; rate: number; since: number } = { aheadMs: 0, rate: 1, since: Date.now() };

  private constructor(port: number, args: readonly string[], clock: ServerClock, running: RedisServer) {
    this.port = port;
    this.#args = args;
    this.#clock = clock;
    this.#running = running;
    this.#direct = new Redis({
      host: "127.0.0.1",
      port,
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      commandTimeout: answersWithinMs,
    });
    this.#direct.on("error", () => undefined);
  }

  static async start(setup: NodeSetup, folder: string, clock: ServerClock): Promise<ChaosServer> {
    await mkdir(folder, { recursive: true });
    const args = ["--dir", folder, ...(setup.durable ? durable : [])];
    for (let attempt = 1; ; attempt += 1) {
      const port = await steadyPort();
      try {
        const running = await startRedis({ port, args, env: clock.env });
        return new ChaosServer(port, args, clock, running);
      } catch (error) {
        // Between our look and its bind another program may have taken the port.
        if (attempt === startAttempts) {
          throw error;
        }
      }
    }
  }

  /** SIGKILL, and so long afterwards the next run. Without a disk it has forgotten everything. */
  async restart(downMs: () => Promise<void>): Promise<void> {
    this.#scriptsBefore = await this.scriptCount();
    const killed = this.#running;
    this.#running = undefined;
    killed?.kill("SIGKILL");
    await killed?.stop();
    await downMs();
    this.#running = await startRedis({ port: this.port, args: this.#args, env: this.#clock.env });
  }

  /** It keeps its connections and answers nothing. */
  freeze(): void {
    this.#running?.freeze();
  }

  thaw(): void {
    this.#running?.thaw();
  }

  /** Its wall clock is ahead by so much more from now on. */
  step(ms: number): void {
    this.#set({ aheadMs: this.#aheadMs() + ms });
  }

  /** Its wall clock goes on from where it is at another speed. */
  run(rate: number): void {
    this.#set({ rate });
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

  /** Keys beside those that may stay for a while: fencing counters, latches and who a client is, each with a TTL. */
  async leftovers(): Promise<string[]> {
    const keys = await this.#direct.keys("*");
    const left: string[] = [];
    for (const key of keys) {
      const mayStay = /^holdfast:(fence|client):|^(lock:|holdfast:queue:\{lock:)latch-/.test(key);
      const ttlMs = await this.#direct.pttl(key);
      if (mayStay ? ttlMs === -1 : ttlMs !== -2) {
        const type = await this.#direct.type(key);
        const content =
          type === "zset"
            ? await this.#direct.zrange(key, "0", "9")
            : await this.#direct.get(key).catch(() => type);
        left.push(`${key} (${ttlMs === -1 ? "without a TTL" : `${ttlMs} ms`}): ${String(content)}`);
      }
    }
    return left;
  }

  async stop(): Promise<void> {
    this.#direct.disconnect();
    await this.#running?.stop();
  }

  #aheadMs(): number {
    const { aheadMs, rate, since } = this.#time;
    // Down: what it is ahead by is lost rather than gained, as a clock that goes forward ends keys early.
    return Math.floor(aheadMs + (rate - 1) * (Date.now() - since));
  }

  #set({ aheadMs = this.#aheadMs(), rate = 1 }: { aheadMs?: number; rate?: number }): void {
    this.#time = { aheadMs, rate, since: Date.now() };
    this.#clock.set({ aheadMs, rate });
  }
}
