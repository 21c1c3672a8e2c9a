import { Redis } from "ioredis";
import { Redlock as NewRedlock } from "holdfast/compat/redlock";
import OldRedlock from "redlock";
import { expect, test } from "vitest";
import { startLongUp, type RedisServer } from "@holdfast/test-kit";

import { onLongUpRedis } from "../../support/servers.ts";

/** The calls that both libraries have. */
interface EitherRedlock {
  acquire(resources: string[], duration: number): Promise<Held>;
}

interface Held {
  release(): Promise<unknown>;
}

const settings = { retryCount: -1, retryDelay: 20, retryJitter: 10 };
/** The old library keeps its votes while it retries, and even they refuse its retry, so a split vote would last for the duration. */
const oldSettings = { retryCount: 0 };
const turnsPerProcess = 25;

onLongUpRedis("old and new processes", () => {
  test.each([1, 3])("exclude each other on %i servers, and all get their turns", async (count) => {
    const servers = await Promise.all(Array.from({ length: count }, () => startLongUp()));
    const clients: Redis[] = [];
    const connect = (): Redis[] => {
      const own = servers.map(({ port }) => new Redis(port, "127.0.0.1"));
      clients.push(...own);
      return own;
    };
    const fresh = [new NewRedlock(connect(), settings), new NewRedlock(connect(), settings)];
    const old = [new OldRedlock(connect(), oldSettings), new OldRedlock(connect(), oldSettings)];
    let [inside, turns] = [0, 0];
    const work = async (redlock: EitherRedlock): Promise<void> => {
      for (let turn = 0; turn < turnsPerProcess; turn += 1) {
        const lock = await acquire(redlock);
        inside += 1;
        expect(inside).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inside -= 1;
        turns += 1;
        await lock.release();
        await new Promise((resolve) => setTimeout(resolve, 5)); // old processes poll, so they need a free moment
      }
    };
    try {
      await Promise.all([...fresh, ...old].map((redlock) => work(redlock as EitherRedlock)));
      expect(turns).toBe(4 * turnsPerProcess);
    } finally {
      await Promise.all(fresh.map((redlock) => redlock.quit()));
      clients.forEach((client) => client.disconnect());
      await Promise.all(servers.map((server: RedisServer) => server.stop()));
    }
  });
});

/** Each attempt that fails gives its votes back. */
async function acquire(redlock: EitherRedlock): Promise<Held> {
  for (;;) {
    const held = await redlock.acquire(["shared resource"], 60_000).catch((error: unknown) => {
      if (!(error instanceof Error && error.name === "ExecutionError")) {
        throw error;
      }
    });
    if (held) {
      return held;
    }
    await new Promise((resolve) => setTimeout(resolve, 10 + 20 * Math.random()));
  }
}
