import { startEtcd, startMariaDb, startPostgres, startZooKeeper } from "@holdfast/test-kit/engines";
import { cpuMsOf, processesOf } from "../measure/process-cpu.ts";
import type { ServerStats } from "../measure/server-stats.ts";
import { pinProcess } from "../run/placement.ts";
import { administrate, type Administration } from "./administration.ts";
import type { Engine } from "./engine.ts";

interface StartedServer {
  readonly pid: number;
  /** The URL or `host:port` for clients. */
  readonly address: string;
  stop(): Promise<void>;
}

/** The servers wait for the disk at each write, as in production. */
const starters: Readonly<Record<Engine, () => Promise<StartedServer>>> = {
  postgres: async () => withAddress(await startPostgres(["-c", "max_connections=200"])),
  mysql: async () => withAddress(await startMariaDb(["--max-connections=200"])),
  etcd: async () => withAddress(await startEtcd()),
  zookeeper: async () => startZooKeeper("-Xmx512m -XX:+UseSerialGC"),
};

/** A private server of an engine, with an administrative connection. */
export class EngineServer implements AsyncDisposable {
  readonly #server: StartedServer;
  readonly #administration: Administration;

  private constructor(server: StartedServer, administration: Administration) {
    this.#server = server;
    this.#administration = administration;
  }

  /** @param cpus a list like "0,2" for all threads and processes of the server; `null`: any CPU */
  static async start(engine: Engine, cpus: string | null): Promise<EngineServer> {
    const server = await starters[engine]();
    try {
      if (cpus !== null) for (const pid of processesOf(server.pid)) pinProcess(pid, cpus);
      return new EngineServer(server, await administrate(engine, server.address));
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get address(): string {
    return this.#server.address;
  }

  get version(): string {
    return this.#administration.version;
  }

  async readStats(): Promise<ServerStats> {
    return { commands: await this.#administration.requests(), cpuMs: cpuMsOf(this.#server.pid) };
  }

  async clear(): Promise<void> {
    await this.#administration.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#administration.close();
    await this.#server.stop();
  }
}

function withAddress({
  pid,
  url,
  stop,
}: {
  readonly pid: number;
  readonly url: string;
  stop(): Promise<void>;
}): StartedServer {
  return { pid, address: url, stop };
}
