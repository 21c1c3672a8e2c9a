import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { engines } from "../../chaos/plan/engines.ts";
import { planOf } from "../../chaos/plan/planner.ts";
import type { Pair } from "../pairs.ts";
import { Participant, type Side } from "./participant.ts";
import { holdfastCommand, toolchains } from "./toolchains.ts";

/** A server, and the processes of one pair that use it. */
export class Arena {
  readonly pair: Pair;
  readonly folder: string;
  readonly server: RedisServer;
  readonly #cache: string;
  readonly #participants: Participant[] = [];
  #startedCount = 0;

  private constructor(pair: Pair, folder: string, cache: string, server: RedisServer) {
    this.pair = pair;
    this.folder = folder;
    this.#cache = cache;
    this.server = server;
  }

  /** @param folder the folder of the history */
  static async open(pair: Pair, folder: string, cache: string): Promise<Arena> {
    await mkdir(join(folder, "history"), { recursive: true });
    const plan = planOf(engines.redis, { seed: 1, minutes: 1, nodeCount: 1, without: null });
    await writeFile(join(folder, "plan.json"), JSON.stringify(plan));
    for (const name of ["resource", "coordinator"]) {
      await writeFile(join(folder, "history", `${name}.ndjson`), "");
    }
    return new Arena(pair, folder, cache, await startRedis());
  }

  /** Starts processes and warms them up with locks of this TTL. */
  async start(ttlMs: number, sides: readonly Side[]): Promise<Participant[]> {
    const started = await Promise.all(sides.map((side) => this.#startOne(side)));
    await Promise.all(started.map((participant) => participant.warmUp(ttlMs)));
    return started;
  }

  async #startOne(side: Side): Promise<Participant> {
    const { port } = this.server;
    const { pair } = this;
    this.#startedCount += 1;
    const name = `${side}-${this.#startedCount}`;
    const command =
      side === "ours"
        ? holdfastCommand(port, pair.holdfast)
        : toolchains[pair.toolchain].command(this.#cache, pair.name, port);
    const participant = await Participant.start(name, side, command, this.folder);
    this.#participants.push(participant);
    return participant;
  }

  /** Ends the processes of a scenario. */
  async end(participants: readonly Participant[]): Promise<void> {
    await Promise.all(participants.map(({ worker }) => worker.quit()));
  }

  async close(): Promise<void> {
    await this.end(this.#participants);
    await this.server.stop();
  }

  get errors(): string[] {
    return this.#participants.flatMap(({ errors }) => errors);
  }
}
