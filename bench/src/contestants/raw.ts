import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { connect } from "../client.ts";
import type { Contestant } from "../contestant.ts";

const retryWithinMs = 20;

// The script of the Redis manual, and its twin for renewal.
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

/** What people write by hand: no more than the commands, and a retry after a random delay. */
export const raw: Contestant = {
  settings: `SET NX PX, compare-and-delete script; retries after 0 to ${retryWithinMs} ms; renews by script at a third of the TTL`,
  open: async ([port]) => {
    const client: Redis & Commands = connect(port);
    client.defineCommand("compareAndDelete", { numberOfKeys: 1, lua: releaseScript });
    client.defineCommand("compareAndExpire", { numberOfKeys: 1, lua: extendScript });

    async function take(key: string, ttlMs: number): Promise<string> {
      const token = randomUUID();
      while ((await client.set(key, token, "PX", ttlMs, "NX")) !== "OK") {
        await sleep(Math.random() * retryWithinMs);
      }
      return token;
    }

    return {
      acquire: async (key, ttlMs) => {
        const token = await take(key, ttlMs);
        return () => client.compareAndDelete(key, token);
      },
      hold: async (key, ttlMs) => {
        const token = await take(key, ttlMs);
        let lost = false;
        const lose = (): void => {
          lost = true;
          clearInterval(timer);
        };
        const timer = setInterval(() => {
          client
            .compareAndExpire(key, token, ttlMs)
            .then((renewed) => (renewed === 1 ? undefined : lose()), lose);
        }, ttlMs / 3);
        return { isLost: () => lost };
      },
    };
  },
};
