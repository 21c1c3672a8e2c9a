import type { Redis } from "ioredis";
import type { Placement } from "./placement.ts";
import { uptimeToVoteMs } from "./quorum-settings.ts";
import type { Topology } from "./contestant-list.ts";
import { Servers } from "./servers.ts";
import type { Site, Suite } from "../suites/suite.ts";

const sizes: Readonly<Record<Topology, number>> = { server: 1, quorum: 5 };

/** The servers of a run. They start before the first turn, for the topologies that the suites need. */
export class ServerPool implements AsyncDisposable {
  readonly #placement: Placement;
  readonly #print: (line: string) => void;
  readonly #opened = new Map<Topology, Servers>();
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
      for (const topology of new Set(suites.map((suite) => suite.topology))) {
        serverPool.#opened.set(topology, await Servers.start(sizes[topology], placement.serverCpus));
      }
      return serverPool;
    } catch (error) {
      await serverPool[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The admin connection of any server, because all run the same program. */
  get admin(): Redis {
    const [{ admin }] = this.#siteOn([...this.#opened.keys()][0]).servers;
    return admin;
  }

  /** Resolves when the servers of the suite are ready. The nodes of a quorum are ready when they may vote. */
  async siteOf({ topology }: Suite): Promise<Site> {
    const site = this.#siteOn(topology);
    if (topology === "quorum") await (this.#ready ??= this.#awaitReady());
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#opened.values()].map((servers) => servers[Symbol.asyncDispose]()));
  }

  async #awaitReady(): Promise<void> {
    this.#print(`Waiting until the nodes of the quorum have been up for ${uptimeToVoteMs / 1000} s.`);
    await this.#opened.get("quorum")?.awaitUptime(uptimeToVoteMs);
  }

  #siteOn(topology: Topology | undefined): Site {
    const [first, ...others] = (topology && this.#opened.get(topology)?.servers) ?? [];
    if (!first) throw new Error(`Expected servers for ${topology}, got none`);
    return { placement: this.#placement, servers: [first, ...others], deadPorts: [] };
  }
}
