import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { severalOf, severalText } from "../run/several-keys.ts";

const retryWithinMs = 20;

// The release script of the Redis manual, and the same comparison for a renewal.
const releaseScript = `
  if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end
`;
const extendScript = `
  if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end
`;

interface Commands {
  compareAndDelete(key: string, token: string): Promise<number>;
  compareAndExpire(key: string, token: string, ttlMs: number): Promise<number>;
}

const acquireManyScript = `
  for _, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end
  for _, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "px", ARGV[2]) end
  return 1
`;
const releaseManyScript = `
  for _, key in ipairs(KEYS) do if redis.call("get", key) == ARGV[1] then redis.call("del", key) end end
`;

/** A lock as programs write it by hand: only the commands, and a retry after a random delay. */
export const raw: Contestant = {
  settings: `SET NX PX, compare-and-delete script; retries after 0 to ${retryWithinMs} ms; renews by script at a third of the TTL`,
  open: async ([port]) => {
    const client: Redis & Commands = connect(port);
    client.defineCommand("compareAndDelete", { numberOfKeys: 1, lua: releaseScript });
    client.defineCommand("compareAndExpire", { numberOfKeys: 1, lua: extendScript });

    async function acquire(key: string, ttlMs: number): Promise<string> {
      const token = randomUUID();
      while ((await client.set(key, token, "PX", ttlMs, "NX")) !== "OK") {
        await sleep(Math.random() * retryWithinMs);
      }
      return token;
    }

    return {
      acquire: async (key, ttlMs) => {
        const token = await acquire(key, ttlMs);
        return () => client.compareAndDelete(key, token);
      },
      hold: async (key, ttlMs) => {
        const token = await acquire(key, ttlMs);
        let lost = false;
        const markLost = (): void => {
          lost = true;
          clearInterval(timer);
        };
        const timer = setInterval(() => {
          client
            .compareAndExpire(key, token, ttlMs)
            .then((renewed) => (renewed === 1 ? undefined : markLost()), markLost);
        }, ttlMs / 3);
        return { isLost: () => lost };
      },
    };
  },
};

interface MultiKeyCommands {
  acquireMany(count: number, ...keysTokenTtl: readonly (string | number)[]): Promise<number>;
  releaseMany(count: number, ...keysAndToken: readonly string[]): Promise<unknown>;
}

/** Locks all of several keys or none, by two hand-written scripts. */
export const rawMany: Contestant = {
  settings: `${severalText} by a script; retries after 0 to ${retryWithinMs} ms`,
  open: async ([port]) => {
    const client: Redis & MultiKeyCommands = connect(port);
    client.defineCommand("acquireMany", { lua: acquireManyScript });
    client.defineCommand("releaseMany", { lua: releaseManyScript });
    return {
      acquire: async (key, ttlMs) => {
        const token = randomUUID();
        const keys = severalOf(key);
        while ((await client.acquireMany(keys.length, ...keys, token, ttlMs)) !== 1) {
          await sleep(Math.random() * retryWithinMs);
        }
        return () => client.releaseMany(keys.length, ...keys, token);
      },
      hold: null,
    };
  },
};
