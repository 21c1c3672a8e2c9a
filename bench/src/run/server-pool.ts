import type { Redis } from "ioredis";
import type { Placement } from "./placement.ts";
import { uptimeToVoteMs } from "./quorum-settings.ts";
import type { Ground } from "./contestant-list.ts";
import { Servers } from "./servers.ts";
import type { Site, Suite } from "../suites/suite.ts";

const sizes: Readonly<Record<Ground, number>> = { server: 1, quorum: 5 };

/** The servers of a run, started before its first turn and only where a suite asks for them. */
export class Grounds implements AsyncDisposable {
  readonly #placement: Placement;
  readonly #say: (line: string) => void;
  readonly #opened = new Map<Ground, Servers>();
  #settled: Promise<void> | undefined;

  private constructor(placement: Placement, say: (line: string) => void) {
    this.#placement = placement;
    this.#say = say;
  }

  static async open(
    suites: readonly Suite[],
    placement: Placement,
    say: (line: string) => void,
  ): Promise<Grounds> {
    const grounds = new Grounds(placement, say);
    try {
      for (const ground of new Set(suites.map((suite) => suite.ground))) {
        grounds.#opened.set(ground, await Servers.start(sizes[ground], placement.serverCpus));
      }
      return grounds;
    } catch (error) {
      await grounds[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Some server's: all run the same program. */
  get admin(): Redis {
    const [{ admin }] = this.#siteOn([...this.#opened.keys()][0]).servers;
    return admin;
  }

  /** Resolves once its servers are ready to be measured: those of a quorum are not before they may vote. */
  async siteOf({ ground }: Suite): Promise<Site> {
    const site = this.#siteOn(ground);
    if (ground === "quorum") await (this.#settled ??= this.#settle());
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#opened.values()].map((servers) => servers[Symbol.asyncDispose]()));
  }

  async #settle(): Promise<void> {
    this.#say(`Waiting until the nodes of the quorum have been up for ${uptimeToVoteMs / 1000} s.`);
    await this.#opened.get("quorum")?.haveBeenUp(uptimeToVoteMs);
  }

  #siteOn(ground: Ground | undefined): Site {
    const [first, ...others] = (ground && this.#opened.get(ground)?.servers) ?? [];
    if (!first) throw new Error(`Expected servers for ${ground}, got none`);
    return { placement: this.#placement, servers: [first, ...others], deadPorts: [] };
  }
}
