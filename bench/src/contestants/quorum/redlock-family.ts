import { setTimeout as sleep } from "node:timers/promises";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

const [minPauseMs, maxPauseMs] = [100, 300];
const retryPause = `called again after ${minPauseMs} to ${maxPauseMs} ms whenever it gives up, so that it waits`;

/** What redlock 5 and its fork have in common. */
interface Library {
  create(clients: any[]): Locks;
  readonly ExecutionError: new (...args: any[]) => Error;
}

interface Locks {
  acquire(resources: string[], ttlMs: number, settings: Settings): Promise<Lock>;
}

interface Settings {
  readonly retryCount?: number;
}

interface Lock {
  release(): Promise<unknown>;
}

/**
 * Between the retries of one call it keeps the votes of a minority, and blocks itself and others with them: so with its
 * defaults. Without end, as on one server, nobody would get a contended lock before these votes expire.
 */
export function withOwnRetries(library: Library): Contestant {
  return contestant(library, `defaults (retryCount 10, 200 ± 100 ms apart), ${retryPause}`, {});
}

/** The retries left to the caller: every call gives back what it got, so that nobody is blocked by a minority. */
export function withSingleAttempts(library: Library): Contestant {
  return contestant(library, `retryCount 0, ${retryPause}`, { retryCount: 0 });
}

function contestant({ create, ExecutionError }: Library, text: string, settings: Settings): Contestant {
  async function acquire(locks: Locks, key: string, ttlMs: number): Promise<Lock> {
    for (;;) {
      try {
        return await locks.acquire([key], ttlMs, settings);
      } catch (error) {
        if (!(error instanceof ExecutionError)) throw error;
      }
      await sleep(minPauseMs + Math.random() * (maxPauseMs - minPauseMs));
    }
  }

  return {
    settings: text,
    open: async (ports) => {
      const locks = create(await connectAll(ports));
      return {
        acquire: async (key, ttlMs) => {
          const lock = await acquire(locks, key, ttlMs);
          return () => lock.release();
        },
        hold: null,
      };
    },
  };
}
