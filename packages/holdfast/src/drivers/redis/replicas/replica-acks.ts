import { LockError } from "../../../errors.ts";
import { Batcher } from "../server/batch.ts";
import { singleServerBatches } from "../server/batch-settings.ts";
import type { CommandConnection, Connection } from "../clients/connection.ts";
import { replicasError } from "../server/errors.ts";
import { performOnce } from "../server/perform-once.ts";
import { counterKey, type LockKeys } from "../protocol/keys.ts";
import type { Reply } from "../protocol/operation.ts";
import type { OneServerSettings } from "../options.ts";
import { Responsiveness } from "../server/responsiveness.ts";

/** A grant whose replicas are asked for. */
export interface AckRequest {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly metadata: string;
}

/**
 * Writes that count once so many replicas have them. `WAIT` speaks of what its own connection has sent: a grant that was written by
 * another's release would be waited for in vain, so each is prolonged here first, on the connection that waits. Replicas take the
 * writes of a server in one order: who has this one has the grant before it.
 */
export class ReplicaAcks {
  readonly #connection: CommandConnection;
  readonly #minReplicas: number;
  readonly #waitMs: number;
  readonly #batcher: Batcher;
  #waiting: Promise<number> | undefined;
  #lost: (() => void) | undefined;
  #next: Promise<number> | undefined;

  /** @param revived the server answers this connection again */
  constructor(connection: Connection, settings: OneServerSettings, revived: () => void) {
    const { clock, commandTimeoutMs, queueBound } = settings;
    const ownConnection = connection.dedicatedConnection?.();
    if (!ownConnection) {
      throw new LockError("This client cannot wait for replicas: `minReplicas` needs ioredis or node-redis", {
        code: "unsupported",
      });
    }
    this.#connection = ownConnection;
    ownConnection.onDown(() => {
      this.#lost?.(); // a wait on another connection than that of the write would be for nothing
    });
    this.#minReplicas = settings.minReplicas;
    this.#waitMs = Math.ceil(commandTimeoutMs / 2);
    // A call may stand behind a wait that is under way, and then has its own.
    const timeoutMs = commandTimeoutMs + this.#waitMs;
    const run: CommandConnection["run"] = async (script, keys, args) => {
      const answers = await ownConnection.run(script, keys, args);
      const acknowledged = await this.#count();
      if (acknowledged < this.#minReplicas) {
        throw replicasError(acknowledged, this.#minReplicas);
      }
      return answers;
    };
    this.#batcher = new Batcher(
      { run },
      clock,
      singleServerBatches(counterKey(), queueBound, timeoutMs),
      {
        replied: () => undefined,
        unresponsive: () => connection.refreshPrimary?.(),
      },
      new Responsiveness({
        clock,
        timeoutMs,
        probe: () => ownConnection.command("INFO", ["replication"]),
        recovered: revived,
      }),
    );
  }

  /** Prolongs a grant; resolves when enough replicas have it. Rejects with an `EngineError`: then it may be prolonged all the same. */
  extend({ key, keys, token, fencingToken, ttlMs, metadata }: AckRequest): Promise<Reply> {
    const args = ["extend", token, String(ttlMs), metadata, fencingToken.toString()];
    return performOnce(this.#batcher, { key, keys, args });
  }

  close(): void {
    this.#connection.close();
  }

  /** How many have what was sent here. One wait is under way at a time, as it blocks the connection; who comes meanwhile shares the next. */
  #count(): Promise<number> {
    this.#next ??= this.#afterCurrent();
    return this.#next;
  }

  async #afterCurrent(): Promise<number> {
    await this.#waiting?.catch(() => undefined);
    this.#next = undefined;
    this.#waiting = new Promise((resolve, reject) => {
      this.#lost = () => {
        // Its client may have dropped the command without a word, and the next wait stands behind this one.
        reject(new Error("The connection was lost while it waited for replicas"));
      };
      const called = this.#connection.command("WAIT", [String(this.#minReplicas), String(this.#waitMs)]);
      called.then((acknowledged) => resolve(Number(acknowledged)), reject);
    });
    return this.#waiting;
  }
}
