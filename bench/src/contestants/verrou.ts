import { Verrou } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";

/** Retries every 250 ms without a limit. One lock object for each grant, as in the library's examples. */
export const verrou: Contestant = {
  settings: "defaults (retry every 250 ms, without end); has no renewal",
  open: async ([port]) => {
    const driver = redisStore({ connection: connect(port) });
    const locks = new Verrou({ default: "redis", stores: { redis: { driver } } });
    return {
      acquire: async (key, ttlMs) => {
        const lock = locks.createLock(key, ttlMs);
        await lock.acquire();
        return () => lock.release();
      },
      hold: null,
    };
  },
};
