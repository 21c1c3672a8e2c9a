import { setTimeout as sleep } from "node:timers/promises";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

const [minPauseMs, maxPauseMs] = [100, 300];
const retryPause = `called again ${minPauseMs} to ${maxPauseMs} ms after each failure, so that it waits`;

/** The interface that redlock 5 and its fork share. */
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
 * With the library's own retries, limited as by default. Between the retries of one call, the library keeps its minority of votes,
 * which blocks this caller and others. With unlimited retries, no caller would get a contended lock before these votes expire.
 */
export function withOwnRetries(library: Library): Contestant {
  return contestant(library, `defaults (retryCount 10, 200 ± 100 ms apart), ${retryPause}`, {});
}

/**
 * The caller repeats single attempts. The library releases its votes after each failed attempt, so that no minority blocks another
 * caller.
 */
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
