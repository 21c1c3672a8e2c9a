import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startRedis, type RedisServer, type ServerOptions } from "./redis-server.ts";
import { compileShim, joinedEnv } from "./shim.ts";

/** The wall clock of one server, in a file that the server reads. */
export class ServerClock {
  /** Environment variables for the start of the server. */
  readonly env: Readonly<Record<string, string>>;
  readonly #file: number;

  constructor(library: string, path: string) {
    this.env = { LD_PRELOAD: library, HOLDFAST_CLOCK_FILE: path };
    this.#file = openSync(path, "w+");
    this.set({});
  }

  close(): void {
    closeSync(this.#file);
  }

  /** From now on the clock is ahead by `aheadMs` and runs at `rate` times the real speed. */
  set({ aheadMs = 0, rate = 1 }: { aheadMs?: number; rate?: number }): void {
    const setting = Buffer.alloc(24);
    setting.writeBigInt64LE(BigInt(aheadMs) * 1_000n, 0);
    setting.writeDoubleLE(rate, 8);
    setting.writeBigInt64LE(BigInt(Date.now()) * 1_000n, 16);
    writeSync(this.#file, setting, 0, setting.length, 0);
  }
}

/** Clocks for servers, with files in one folder. They need Linux and a C compiler. */
export class ServerClocks implements AsyncDisposable {
  readonly clocks: readonly ServerClock[];
  readonly #folder: string;
  readonly #removeOnExit = (): void => {
    rmSync(this.#folder, { recursive: true, force: true });
  };

  private constructor(folder: string, clocks: readonly ServerClock[]) {
    this.#folder = folder;
    this.clocks = clocks;
    process.once("exit", this.#removeOnExit);
  }

  /** Compiles the shim, and creates `count` clocks. */
  static async make(count: number): Promise<ServerClocks> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-clock-"));
    try {
      await chmod(folder, 0o755); // a server may run as another user
      const library = compileShim("clock-shim", folder);
      const path = (index: number): string => join(folder, `clock-${index}`);
      const clocks = Array.from({ length: count }, (_, index) => new ServerClock(library, path(index)));
      return new ServerClocks(folder, clocks);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#removeOnExit);
    for (const clock of this.clocks) {
      clock.close();
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Starts a server that reports an uptime of one hour. It needs Linux and a C compiler, and reports its true uptime after a restart. */
export async function startLongUp(options: ServerOptions = {}): Promise<RedisServer> {
  const made = await ServerClocks.make(1);
  try {
    const [clock] = made.clocks as [ServerClock];
    clock.set({ aheadMs: -3_600_000 });
    const server = await startRedis({ ...options, env: joinedEnv(options.env, clock.env) });
    clock.set({});
    return server;
  } finally {
    await made[Symbol.asyncDispose](); // the server has mapped its files
  }
}
