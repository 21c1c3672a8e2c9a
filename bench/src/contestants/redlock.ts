import Redlock from "redlock";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { severalOf, severalText } from "../run/several-keys.ts";
import { holdInside } from "./using.ts";

/** Retries 200 ± 100 ms apart; `using` extends 500 ms before the end. One client is the library's own set-up for one node. */
export const redlock: Contestant = {
  settings: "defaults, but acquire with retryCount -1, so that it waits; held leases by using()",
  open: async ([port]) => {
    const locks = new Redlock([connect(port)]);
    return {
      // The unlimited retries apply to acquire only, because with them the release of an expired lock would never settle.
      acquire: async (key, ttlMs) => {
        const lock = await locks.acquire([key], ttlMs, { retryCount: -1 });
        return () => lock.release();
      },
      hold: (key, ttlMs) => holdInside((routine) => locks.using([key], ttlMs, routine)),
    };
  },
};

/** The library's `acquire` accepts a list of keys, and locks all or none. */
export const redlockSeveral: Contestant = {
  settings: `${severalText}, defaults, but retryCount -1`,
  open: async ([port]) => {
    const locks = new Redlock([connect(port)]);
    return {
      acquire: async (key, ttlMs) => {
        const lock = await locks.acquire(severalOf(key), ttlMs, { retryCount: -1 });
        return () => lock.release();
      },
      hold: null,
    };
  },
};
