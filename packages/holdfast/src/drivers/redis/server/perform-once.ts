import { isLockError } from "../../../errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Operation, Reply } from "../protocol/operation.ts";
import { engineError, outcomeOf, serverRefusal, withServer } from "./errors.ts";
import type { RedisServer } from "./server.ts";

interface SingleOperation {
  readonly key: string;
  readonly keys: LockKeys;
  readonly args: readonly string[];
  readonly auditKey?: string | undefined;
}

/** Performs one operation, without repeats. Rejects with an `EngineError`. */
export function performOnce(
  target: { perform(operation: Operation): void },
  { key, keys, args, auditKey }: SingleOperation,
): Promise<Reply> {
  return new Promise<Reply>((resolve, reject) => {
    target.perform({
      keys,
      args,
      auditKey,
      answered: (reply) => {
        const value = reply.value as unknown[] | number;
        if (Array.isArray(value) && value[0] === "error") {
          reject(engineError(serverRefusal(String(value[1])), key, "none"));
        } else {
          resolve(reply);
        }
      },
      failed: (error) => reject(engineError(error, key, outcomeOf(error))),
    });
  });
}

/** Performs one operation, after the first handshake with its server. Rejects with an `EngineError`, at the latest after `commandTimeoutMs`. */
export async function requestOnce(server: RedisServer, operation: SingleOperation): Promise<Reply> {
  if (!server.isTimeKnown) {
    await server.handshake();
  }
  try {
    return await performOnce(server, operation);
  } catch (error) {
    throw isLockError(error) ? withServer(error, server.connection) : error;
  }
}
