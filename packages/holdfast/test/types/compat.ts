// The replacements accept real clients with their own types. Compiled with `skipLibCheck: false`.
import type { Cluster as IoredisCluster6, Redis as Ioredis6 } from "ioredis";
import type { Cluster as IoredisCluster5, Redis as Ioredis5 } from "ioredis5";

import {
  LostLockError,
  Mutex,
  RedlockMutex,
  Semaphore,
  type LockOptions,
} from "holdfast/compat/redis-semaphore";

export interface Clients {
  readonly ioredis6: Ioredis6;
  readonly ioredis6WithResp3: Ioredis6<"resp3">;
  readonly ioredis6Cluster: IoredisCluster6;
  readonly ioredis5: Ioredis5;
  readonly ioredis5Cluster: IoredisCluster5;
}

const options: LockOptions = {
  acquiredExternally: true,
  onLockLost(error) {
    const loss: LostLockError = error;
    console.log(this.identifier, this.isAcquired, loss);
  },
};

export function locksOf(clients: Clients): unknown[] {
  return [
    new Mutex(clients.ioredis6, "key", options),
    new Mutex(clients.ioredis6WithResp3, "key"),
    new Mutex(clients.ioredis6Cluster, "key"),
    new Semaphore(clients.ioredis5, "key", 2),
    new Semaphore(clients.ioredis5Cluster, "key", 2),
    new RedlockMutex([clients.ioredis5, clients.ioredis5], "key"),
  ];
}
