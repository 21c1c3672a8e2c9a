import { Verrou } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";

import type { Library } from "../library.ts";

/** Each grant has a lock object of its own, as in the library's examples. The library has no renewal and no quorum. */
export const verrou: Library = {
  settings: "defaults (250 ms between tries), retry.timeout for the wait",
  onServer: (connection) => {
    const driver = redisStore({ connection });
    const locks = new Verrou({ default: "redis", stores: { redis: { driver } } });
    return {
      nameOnServer: (key) => key,
      acquire: async (key, { ttlMs, waitMs }) => {
        const lock = locks.createLock(key, ttlMs);
        if (!(await lock.acquire({ retry: { timeout: waitMs } }))) {
          throw new Error("acquire() resolved with false");
        }
        return { isHeld: () => !lock.isExpired(), release: () => lock.release() };
      },
      hold: null,
      withLock: async (key, ttlMs, work) => {
        const [ran, value] = await locks.createLock(key, ttlMs).run(work);
        if (!ran) {
          throw new Error("run() did not run");
        }
        return value;
      },
      isHeld: (key) => locks.createLock(key).isLocked(),
      acquireUntilAborted: null,
      permit: null,
    };
  },
  onQuorum: null,
};
