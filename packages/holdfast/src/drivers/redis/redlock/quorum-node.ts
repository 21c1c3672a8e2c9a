import type { Timer } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import { encodeShared, keysOf } from "../protocol/operation.ts";
import { executeQuorumScript } from "../protocol/scripts.generated.ts";
import type { BatcherSettings } from "../server/batch.ts";
import { RedisServer, type ServerListener, type ServerOptions } from "../server/server.ts";
import { maxSkewWaitMs, type RestartGuardPolicy } from "../options.ts";
import { ReleaseQueue } from "../server/releases.ts";
import { RestartGuard } from "./restart-guard.ts";

const healthCheckMs = 60_000;

interface NodeLimits {
  /** The timeout of one call. */
  readonly nodeTimeoutMs: number;
  /** How far the clocks of two nodes may differ. */
  readonly maxClockDifferenceMs: number;
  /** How long a fencing counter outlives its lock. */
  readonly retentionMs: number;
  readonly queueBound: number;
}

/** The calls of a node of a quorum. */
export function quorumNodeBatches(limits: NodeLimits): BatcherSettings {
  const { nodeTimeoutMs, maxClockDifferenceMs, retentionMs, queueBound } = limits;
  const settings = [String(retentionMs), String(queueBound), String(maxSkewWaitMs(maxClockDifferenceMs))];
  return {
    script: executeQuorumScript,
    // A lone operation is JSON too, because the nodes share one encoded text.
    encode: (operations) => ({ keys: keysOf(operations), args: [...settings, encodeShared(operations)] }),
    timeoutMs: nodeTimeoutMs,
    isQuorumNode: true,
  };
}

export interface QuorumNodeOptions extends Omit<ServerOptions, "listener" | "batches">, NodeLimits {
  readonly index: number;
  readonly maxTtlMs: number;
  readonly restartGuard: RestartGuardPolicy;
  readonly listener: ServerListener;
  /** A reply with the node's time arrived. `isNewRun`: the node was started or restarted since the last reply. */
  readonly answered: (isNewRun: boolean) => void;
  /** The health of the node was read: its votes may count now. */
  readonly healthChecked: (node: QuorumNode) => void;
}

/** One node of a quorum, and whether its votes count. */
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
    const { index, clock, random, commandTimeoutMs, restartGuard, listener, answered } = options;
    const { maxTtlMs, maxClockDifferenceMs } = options;
    this.index = index;
    this.#options = options;
    this.guard = new RestartGuard(clock, maxTtlMs + maxSkewWaitMs(maxClockDifferenceMs), restartGuard);
    this.server = new RedisServer({
      ...options,
      batches: quorumNodeBatches(options),
      listener: {
        ...listener,
        identified: (runId, uptimeMs) => {
          const isNewRun = this.guard.observe(runId, uptimeMs);
          if (isNewRun && this.#isReady) {
            publish("node", () => ({ node: this.name, event: "restarted" }));
          }
          if (!this.guard.isExamined && !this.#isClosed) {
            // A failed attempt is repeated at the next reply. A node that was down at first has its handshake at its first reply.
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
        listener.retry?.(token); // the reply to a retry has the vote, even if the notification is lost
      },
    );
  }

  get name(): string {
    return this.server.connection.name;
  }

  /** The node's time and health are known. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Connects to the server, once. Rejects if the server does not reply; the next call tries again. */
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
    const health = await this.server.health(this.#options.restartGuard === "trust-durable");
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
