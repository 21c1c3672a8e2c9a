import { Redlock } from "@sesamecare-oss/redlock";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { severalOf, severalText } from "../run/several-keys.ts";
import { holdInside } from "./using.ts";

/** A fork of redlock 5, with its defaults: retries 200 ± 100 ms apart, extension 500 ms before the end. */
export const sesamecare: Contestant = {
  settings: "defaults, but acquire with retryCount -1, so that it waits; held leases by using()",
  open: async ([port]) => {
    const locks = new Redlock([connect(port)]);
    return {
      acquire: async (key, ttlMs) => {
        const lock = await locks.acquire([key], ttlMs, { retryCount: -1 });
        return () => lock.release();
      },
      hold: (key, ttlMs) => holdInside((routine) => locks.using([key], ttlMs, routine)),
    };
  },
};

/** The library's `acquire` accepts a list of keys, and locks all or none. */
export const sesamecareSeveral: Contestant = {
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
