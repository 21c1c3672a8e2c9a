import { LockError } from "../../../errors.ts";
import { singleServerBatches } from "../single/server-directory.ts";
import { Batcher } from "../server/batch.ts";
import type { CommandConnection, Connection } from "../clients/connection.ts";
import { replicasError } from "../server/errors.ts";
import { performOnce } from "../server/perform-once.ts";
import { counterKey, type LockKeys } from "../protocol/keys.ts";
import type { Reply } from "../protocol/operation.ts";
import type { OneServerSettings } from "../options.ts";
import { Responsiveness } from "../server/bounded-calls.ts";

/** A grant that replicas must acknowledge. */
export interface AckRequest {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly metadata: string;
}

/**
 * Extends grants, and waits until `minReplicas` replicas have acknowledged the extension.
 *
 * `WAIT` counts only the writes of its own connection, and another connection may have written the grant. So each grant is extended
 * first, on the connection of `WAIT`. A replica applies writes in order, so a replica with the extension also has the grant. The extension
 * of a grant always writes, even if the TTL stays. Without a write `WAIT` would count the acknowledgements of an earlier one.
 */
export class ReplicaAcks {
  readonly #connection: CommandConnection;
  readonly #minReplicas: number;
  readonly #waitMs: number;
  readonly #batcher: Batcher;
  #waiting: Promise<number> | undefined;
  #lost: (() => void) | undefined;
  /** Counts the lost connections. */
  #epoch = 0;
  #next: Promise<number> | undefined;

  /** @param recovered the server replies on this connection again */
  constructor(connection: Connection, settings: OneServerSettings, recovered: () => void) {
    const { clock, commandTimeoutMs, queueBound } = settings;
    const ownConnection = connection.dedicatedConnection?.();
    if (!ownConnection) {
      throw new LockError(
        "This client cannot wait for replicas. Option `minReplicas` requires ioredis or node-redis.",
        {
          code: "unsupported",
        },
      );
    }
    this.#connection = ownConnection;
    ownConnection.onDown(() => {
      this.#epoch += 1;
      this.#lost?.(); // the client library may have dropped the command without an error
    });
    this.#minReplicas = settings.minReplicas;
    this.#waitMs = Math.ceil(commandTimeoutMs / 2);
    // A call may follow a wait in flight, and then needs a wait of its own.
    const timeoutMs = commandTimeoutMs + this.#waitMs;
    const run: CommandConnection["run"] = async (script, keys, args) => {
      const answers = await ownConnection.run(script, keys, args);
      const epoch = this.#epoch;
      const acknowledged = await this.#count();
      if (epoch !== this.#epoch) {
        throw lostWait(); // the wait of another connection does not count the write
      }
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
        recovered,
      }),
    );
  }

  /** Extends a grant. Resolves when enough replicas have acknowledged it. After a rejection with an `EngineError` the grant may still be extended. */
  extend({ key, keys, token, fencingToken, ttlMs, metadata }: AckRequest): Promise<Reply> {
    const args = ["extend", token, String(ttlMs), metadata, fencingToken.toString()];
    return performOnce(this.#batcher, { key, keys, args });
  }

  close(): void {
    this.#connection.close();
  }

  /** How many replicas have this connection's writes. One wait is in flight, because it blocks the connection. Later callers share the next wait. */
  #count(): Promise<number> {
    this.#next ??= this.#afterCurrent();
    return this.#next;
  }

  async #afterCurrent(): Promise<number> {
    await this.#waiting?.catch(() => undefined);
    this.#next = undefined;
    this.#waiting = new Promise((resolve, reject) => {
      this.#lost = () => reject(lostWait());
      const called = this.#connection.command("WAIT", [String(this.#minReplicas), String(this.#waitMs)]);
      called.then((acknowledged) => resolve(Number(acknowledged)), reject);
    });
    return this.#waiting;
  }
}

function lostWait(): Error {
  return new Error("The connection was lost while it waited for replicas");
}
