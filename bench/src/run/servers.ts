import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { uptimeOf } from "../measure/server-stats.ts";
import { RedisServer } from "./server.ts";
import type { Server } from "../suites/suite.ts";

/** Independent Redis servers, with an admin connection to each. They end together. */
export class Servers implements AsyncDisposable {
  readonly #processes: readonly (readonly [process: RedisServer, server: Server])[];

  private constructor(processes: readonly RedisServer[]) {
    this.#processes = processes.map((process) => {
      const { port } = process;
      return [process, { port, admin: new Redis(port, "127.0.0.1") }];
    });
  }

  /** @param cpus a list like "0,2" for all servers; `null`: any CPU */
  static async start(count: number, cpus: string | null): Promise<Servers> {
    const processes: RedisServer[] = [];
    try {
      while (processes.length < count) processes.push(await RedisServer.start(cpus));
      return new Servers(processes);
    } catch (error) {
      await Promise.all(processes.map((process) => process[Symbol.asyncDispose]()));
      throw error;
    }
  }

  get servers(): readonly Server[] {
    return this.#processes.map(([, server]) => server);
  }

  async version(): Promise<string> {
    const info = await this.#processes[0]?.[1].admin.info("server");
    return `Redis ${/^redis_version:(\S+)/m.exec(info ?? "")?.[1] ?? "of an unknown version"}`;
  }

  /** Resolves when every server reports an uptime of at least `forMs`. */
  async awaitUptime(forMs: number): Promise<void> {
    for (;;) {
      const uptimes = await Promise.all(this.servers.map(({ admin }) => uptimeOf(admin)));
      const missingMs = forMs - Math.min(...uptimes);
      if (missingMs <= 0) return;
      await sleep(missingMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#processes.map(async ([process, { admin }]) => {
        admin.disconnect();
        await process[Symbol.asyncDispose]();
      }),
    );
  }
}
