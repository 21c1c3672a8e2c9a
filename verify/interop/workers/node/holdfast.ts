import { setTimeout as pause } from "node:timers/promises";

import { createLocks, isLockError, type Lease, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import * as layouts from "holdfast/redis/layouts";
import { Redis } from "ioredis";

import type { HoldfastSettings } from "./holdfast-settings.ts";
import { fromPerformanceTime, serve, type WorkerGrant, type WorkerLibrary } from "./serve.ts";

// The worker of this library: `node holdfast.js PORT SETTINGS`, with the settings as JSON.

const retryMs = 100;

class HoldfastLibrary implements WorkerLibrary {
  readonly #locks: Locks;
  readonly #client: Redis;
  readonly #settings: HoldfastSettings;
  #held: Lease | undefined;

  constructor(port: number, settings: HoldfastSettings) {
    this.#client = new Redis(port, "127.0.0.1");
    this.#client.on("error", () => undefined);
    this.#settings = settings;
    // Grants pass through the server each time, so that each hand-over is measured.
    const layout = Object.values(layouts).find(({ name }) => name === settings.layout);
    this.#locks = createLocks(redis(this.#client, { ...settings.options, layout }), { handover: false });
  }

  async acquire(name: string, ttlMs: number, waitMs: number): Promise<WorkerGrant | null> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      try {
        const lease = await this.#acquireOnce(name, ttlMs, deadline - performance.now());
        this.#held = lease;
        const token = lease.fencingToken;
        return {
          validUntil: fromPerformanceTime(lease.validUntil),
          ...(typeof token === "bigint" && token > 0n ? { fencingToken: token } : {}),
        };
      } catch (error) {
        if (isLockError(error) && error.code === "wait-timeout") {
          return null;
        }
        const isMismatch = isLockError(error) && error.code === "kind-mismatch";
        if (!isMismatch || this.#settings.retriesMismatch !== true || performance.now() > deadline) {
          throw error;
        }
        await pause(retryMs);
      }
    }
  }

  #acquireOnce(name: string, ttlMs: number, remainingMs: number): Promise<Lease> {
    const { keys = ["{}"], mode } = this.#settings;
    const [first = name, ...others] = keys.map((key) => key.replace("{}", name));
    const options = { ttlMs, waitMs: Math.max(0, Math.round(remainingMs)) };
    if (mode) {
      return this.#locks.readWrite(first)[mode].acquire(options);
    }
    return others.length === 0
      ? this.#locks.acquire(first, options)
      : this.#locks.all([first, ...others]).acquire(options);
  }

  release(): Promise<boolean> {
    return this.#lease().release();
  }

  readonly extend = async (ttlMs: number): Promise<number | null> => {
    const lease = this.#lease();
    try {
      await lease.extend(ttlMs);
      return fromPerformanceTime(lease.validUntil);
    } catch (error) {
      if (isLockError(error) && error.code === "lease-lost") {
        return null;
      }
      throw error;
    }
  };

  #lease(): Lease {
    if (this.#held === undefined) {
      throw new Error("no lock is held");
    }
    return this.#held;
  }

  async close(): Promise<void> {
    await this.#locks.close();
    this.#client.disconnect();
  }
}

const [port, settings] = process.argv.slice(2);
await serve(new HoldfastLibrary(Number(port), JSON.parse(settings ?? "{}") as HoldfastSettings));
