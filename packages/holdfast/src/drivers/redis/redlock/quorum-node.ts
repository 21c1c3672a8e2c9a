import type { Timer } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import { RedisServer, type ServerListener, type ServerOptions } from "../server/server.ts";
import { maxSkewWaitMs } from "../options.ts";
import { ReleaseQueue } from "../server/release-queue.ts";
import { RestartGuard } from "./restart-guard.ts";

const healthCheckMs = 60_000;

export interface QuorumNodeOptions extends Omit<ServerOptions, "listener"> {
  readonly index: number;
  readonly maxTtlMs: number;
  readonly maxClockDifferenceMs: number;
  readonly isGuardOff: boolean;
  readonly listener: ServerListener;
  /** An answer came, which told the node's time; `isNewRun`: also that it was started (again). */
  readonly answered: (isNewRun: boolean) => void;
  /** Its standing is known (again): what it said may count now. */
  readonly healthChecked: (node: QuorumNode) => void;
}

/** One node of a quorum, and whether what it says counts. */
export class QuorumNode {
  readonly index: number;
  readonly server: RedisServer;
  readonly guard: RestartGuard;
  readonly releaseQueue: ReleaseQueue;
  readonly #options: QuorumNodeOptions;
  #isReady = false;
  #handshaking: Promise<void> | undefined;
  #checkingHealth: Promise<void> | undefined;
  #nextHealthCheck: Timer;
  #isClosed = false;

  constructor(options: QuorumNodeOptions) {
    const { index, clock, random, commandTimeoutMs, isGuardOff, listener, answered } = options;
    const { maxTtlMs, maxClockDifferenceMs } = options;
    this.index = index;
    this.#options = options;
    this.guard = new RestartGuard(clock, maxTtlMs + maxSkewWaitMs(maxClockDifferenceMs), isGuardOff);
    this.server = new RedisServer({
      ...options,
      listener: {
        ...listener,
        identified: (runId, uptimeMs) => {
          const isNewRun = this.guard.observe(runId, uptimeMs);
          if (isNewRun && this.#isReady) {
            publish("node", () => ({ node: this.name, event: "restarted" }));
          }
          if (!this.guard.isExamined && !this.#isClosed) {
            // The next answer brings another try; whoever asked, a node that was down at first is met by its first answer.
            (this.#isReady ? this.#checkHealth() : this.handshake()).catch(() => undefined);
          }
          answered(isNewRun);
        },
      },
    });
    this.releaseQueue = new ReleaseQueue(
      () => this.server,
      clock,
      random,
      commandTimeoutMs,
      undefined,
      (token) => {
        listener.retry?.(token); // our own next request: the answer is the vote, whatever becomes of the message
      },
    );
  }

  get name(): string {
    return this.server.connection.name;
  }

  /** Its time and its standing are known. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Asks the server who it is, once. Rejects where it does not answer; the next call asks again. */
  handshake(): Promise<void> {
    this.#handshaking ??= this.#connect().catch((error: unknown) => {
      this.#handshaking = undefined;
      throw error;
    });
    return this.#handshaking;
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#nextHealthCheck);
    this.releaseQueue.close();
    this.server.close();
  }

  async #connect(): Promise<void> {
    await this.server.handshake();
    await this.#checkHealth();
    this.#isReady = true;
    this.#scheduleHealthCheck();
  }

  #checkHealth(): Promise<void> {
    this.#checkingHealth ??= this.#readHealth().finally(() => {
      this.#checkingHealth = undefined;
    });
    return this.#checkingHealth;
  }

  async #readHealth(): Promise<void> {
    const health = await this.server.health();
    const forgotten = this.guard.examine(health);
    if (forgotten !== undefined) {
      publish("node", () => ({ node: this.name, event: "may-have-forgotten", detail: forgotten }));
    }
    this.#options.healthChecked(this);
    if (health.evicts) {
      publish("node", () => ({
        node: this.name,
        event: "evicts",
        detail: "its maxmemory-policy is not noeviction",
      }));
    }
  }

  #scheduleHealthCheck(): void {
    if (!this.#isClosed) {
      const { clock } = this.#options;
      this.#nextHealthCheck = clock.setTimer(() => {
        this.#checkHealth().catch(() => undefined);
        this.#scheduleHealthCheck();
      }, healthCheckMs);
    }
  }
}
