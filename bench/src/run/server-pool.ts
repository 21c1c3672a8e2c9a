import { isEngine, type Engine } from "../engines/engine.ts";
import { EngineServer } from "../engines/engine-server.ts";
import type { Placement } from "./placement.ts";
import { uptimeToVoteMs } from "./quorum-settings.ts";
import type { ContestantName, RedisTopology } from "./contestant-list.ts";
import { Servers } from "./servers.ts";
import { isOnEngine, type EngineSite, type Figures, type Site, type Suite } from "../suites/suite.ts";

const sizes: Readonly<Record<RedisTopology, number>> = { server: 1, quorum: 5 };

/** The servers of a run. They start before the first turn, for the topologies that the suites need. */
export class ServerPool implements AsyncDisposable {
  readonly #placement: Placement;
  readonly #print: (line: string) => void;
  readonly #redis = new Map<RedisTopology, Servers>();
  readonly #engines = new Map<Engine, EngineServer>();
  #ready: Promise<void> | undefined;

  private constructor(placement: Placement, print: (line: string) => void) {
    this.#placement = placement;
    this.#print = print;
  }

  static async open(
    suites: readonly Suite[],
    placement: Placement,
    print: (line: string) => void,
  ): Promise<ServerPool> {
    const serverPool = new ServerPool(placement, print);
    try {
      const running = suites.filter(({ contestants }) => contestants.length > 0);
      for (const topology of new Set(running.map((suite) => suite.topology))) {
        if (isEngine(topology)) {
          serverPool.#engines.set(topology, await EngineServer.start(topology, placement.serverCpus));
        } else {
          serverPool.#redis.set(topology, await Servers.start(sizes[topology], placement.serverCpus));
        }
      }
      return serverPool;
    } catch (error) {
      await serverPool[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The names and versions of all servers. All Redis servers run the same program. */
  async versions(): Promise<readonly string[]> {
    const [redis] = this.#redis.values();
    const engines = [...this.#engines.values()].map(({ version }) => version);
    return redis ? [await redis.version(), ...engines] : engines;
  }

  /** Measures one contestant when the servers of the suite are ready. The nodes of a quorum are ready when they may vote. */
  async *measure(suite: Suite, contestant: ContestantName): AsyncGenerator<Figures, void, void> {
    if (isOnEngine(suite)) {
      yield* suite.measure(contestant, this.#engineSite(suite.topology));
      return;
    }
    if (suite.topology === "quorum") await (this.#ready ??= this.#awaitReady());
    yield* suite.measure(contestant, this.#siteOn(suite.topology));
  }

  /** Removes the data of a contestant from the servers of the suite. */
  async clear(suite: Suite): Promise<void> {
    if (isOnEngine(suite)) await this.#engineServer(suite.topology).clear();
    else await Promise.all(this.#siteOn(suite.topology).servers.map(({ admin }) => admin.flushall()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const servers = [...this.#redis.values(), ...this.#engines.values()];
    await Promise.all(servers.map((one) => one[Symbol.asyncDispose]()));
  }

  async #awaitReady(): Promise<void> {
    this.#print(`Waiting until the nodes of the quorum have been up for ${uptimeToVoteMs / 1000} s.`);
    await this.#redis.get("quorum")?.awaitUptime(uptimeToVoteMs);
  }

  #siteOn(topology: RedisTopology): Site {
    const [first, ...others] = this.#redis.get(topology)?.servers ?? [];
    if (!first) throw new Error(`Expected servers for ${topology}, got none`);
    return { placement: this.#placement, servers: [first, ...others], deadPorts: [] };
  }

  #engineSite(engine: Engine): EngineSite {
    const server = this.#engineServer(engine);
    return {
      placement: this.#placement,
      engine,
      address: server.address,
      readStats: () => server.readStats(),
    };
  }

  #engineServer(engine: Engine): EngineServer {
    const server = this.#engines.get(engine);
    if (!server) throw new Error(`Expected a server for ${engine}, got none`);
    return server;
  }
}
