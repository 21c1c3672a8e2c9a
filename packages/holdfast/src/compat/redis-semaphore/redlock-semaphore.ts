import { LockError } from "../../errors.ts";
import { BaseLock } from "./base-lock.ts";
import type { LockOptions } from "./options.ts";
import type { RedisClient } from "./clients.ts";

/**
 * Not supported, because a quorum of semaphores is not safe. With a limit of 3 on each of 5 nodes, 5 holders can have permits of 3 nodes.
 * Use a `Semaphore` on one server.
 */
export class RedlockSemaphore extends BaseLock {
  /** @throws {LockError} `unsupported`, always */
  constructor(_clients: readonly RedisClient[], key: string, _limit: number, options?: LockOptions) {
    super(refuse(key), options);
  }
}

/** Not supported, for the reason of {@link RedlockSemaphore}. */
export class RedlockMultiSemaphore extends BaseLock {
  /** @throws {LockError} `unsupported`, always */
  constructor(
    _clients: readonly RedisClient[],
    key: string,
    _limit: number,
    _permits: number,
    options?: LockOptions,
  ) {
    super(refuse(key), options);
  }
}

function refuse(key: string): never {
  throw new LockError(
    `A semaphore on a quorum admits more holders than its limit ("${key}"); use Semaphore on one server`,
    { code: "unsupported", key },
  );
}
